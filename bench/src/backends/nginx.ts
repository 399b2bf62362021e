import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, programPath, spawnProcess, temporaryDirectory } from '@weir/testkit';

export type StartedBackend = AsyncDisposable & { readonly port: number };

const RESPONSE_BODY = 'thirty-five bytes for whoever asks\\n';

/** Answers every request at once with 35 bytes, out of memory, for as long as the connection lasts. */
export async function startHttpBackend(): Promise<StartedBackend> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-nginx'));
  const port = await freePort();
  const configuration = join(directory.path, 'nginx.conf');
  writeFileSync(configuration, nginxHttpConfiguration(directory.path, port));
  const args = ['-p', directory.path, '-e', 'stderr', '-c', configuration];
  cleanup.use(await spawnProcess({ command: programPath('nginx'), args, name: 'nginx', mayExit: true }));
  const started = cleanup.move();
  return { port, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** One process without a master: what ends it ends all of it. */
function nginxHttpConfiguration(directory: string, port: number): string {
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
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
  server {
    listen 127.0.0.1:${port} backlog=4096;
    default_type text/plain;
    location / { return 200 "${RESPONSE_BODY}"; }
  }
}
`;
}
