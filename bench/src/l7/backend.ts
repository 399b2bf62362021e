import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';

/** A request that the backend answers with status 200 and `body`. */
export type BackendDocument = {
  readonly path: string;
  readonly body: string;
  /** The size of the body of the request, which the method POST sends. Absent for GET. */
  readonly uploadBytes?: number;
};

const SMALL_BODY = 'thirty-five bytes of response body\n';
const lettersOf = (bytes: number): string => 'abcdefghijklmnopqrstuvwxyz012345'.repeat(bytes / 32);

type DocumentName = 'small' | 'empty' | '10 KB' | '1 MB' | 'upload';

/** What the backend answers. Every other path is answered as `small`. */
export const DOCUMENTS: Readonly<Record<DocumentName, BackendDocument>> = {
  small: { path: '/', body: SMALL_BODY },
  empty: { path: '/empty', body: '' },
  '10 KB': { path: '/10k', body: lettersOf(10_240) },
  '1 MB': { path: '/1m', body: lettersOf(1_048_576) },
  upload: { path: '/upload', body: SMALL_BODY, uploadBytes: 10_240 },
};

export type L7Backend = AsyncDisposable & { readonly port: number; readonly pid: number };

/** Starts nginx in one process. It keeps connections open, and writes no access log. */
export async function startL7Backend(): Promise<L7Backend> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-l7-backend')).path;
  const port = await freePort();
  for (const { path, body } of [DOCUMENTS['10 KB'], DOCUMENTS['1 MB']]) writeFileSync(join(directory, path), body);
  const configuration = join(directory, 'nginx.conf');
  writeFileSync(configuration, backendConfiguration(directory, port));
  const args = ['-p', directory, '-e', 'stderr', '-c', configuration];
  const nginx = cleanup.use(await spawnProcess({ command: programPath('nginx'), args, name: 'nginx', mayExit: true }));
  const started = cleanup.move();
  return { port, pid: nginx.pid, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/**
 * Returns a configuration without a master process. `return` answers before nginx has read the body of the request, which ends the
 * client's connection at some proxies. So `/upload` is relayed to a second server of the same process: nginx reads the body first.
 */
function backendConfiguration(directory: string, port: number): string {
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const small = SMALL_BODY.replace('\n', '\\n');
  return `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off;
  ${folders.map((name) => `${name}_temp_path ${directory}/${name};`).join('\n  ')}
  keepalive_requests 100000000;
  keepalive_timeout 60s;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=10;
  upstream answer { server unix:${directory}/answer.sock; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    default_type text/plain;
    root ${directory};
    location / { return 200 "${small}"; }
    location = /empty { return 200 ""; }
    location = /10k { }
    location = /1m { }
    location = /upload {
      client_body_buffer_size 64k;
      proxy_pass http://answer;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }
  }
  server {
    listen unix:${directory}/answer.sock;
    default_type text/plain;
    location / { return 200 "${small}"; }
  }
}
`;
}
