import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { BackendPorts } from '../subjects/subject.ts';

/** The running backends, which all subjects share. `echoPid` is the process that serves the backends `echo` and `datagrams`. */
export type Backends = AsyncDisposable & { readonly ports: BackendPorts; readonly echoPid: number };

export async function startBackends(): Promise<Backends> {
  await using cleanup = new AsyncDisposableStack();
  const nginx = cleanup.use(await startHttpBackend());
  const source = cleanup.use(await startBulkSource());
  const echo = cleanup.use(await startEchoBackend());
  const started = cleanup.move();
  return {
    ports: { http: nginx.port, stream: source.port, ...echo.ports },
    echoPid: echo.pid,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

export type StartedBackend = AsyncDisposable & { readonly port: number };
/** What the HTTP backend answers. */
export const RESPONSE_BODY = 'thirty-five bytes of response body\n';

/** Starts nginx. It answers every request with a body of 35 bytes, without reading a file, and keeps the connection open. */
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

/** Returns a configuration without a master process, so that nginx has a single process and ends completely with it. */
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
    location / { return 200 "${RESPONSE_BODY.replace('\n', '\\n')}"; }
  }
}
`;
}

const BULK_SOURCE_PROGRAM = fileURLToPath(new URL('./bulk-source-process.ts', import.meta.url));

/**
 * Starts the source of streams in a separate process, so that the source and the benchmark can run on different cores. By default the kernel
 * chooses the size of the source's send buffers.
 */
export async function startBulkSource(sendBufferBytes = 0): Promise<StartedBackend> {
  const source = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', BULK_SOURCE_PROGRAM, String(sendBufferBytes)],
    name: 'bulk source',
    readyWhen: /^port \d+$/m,
    mayExit: true,
  });
  const port = Number(/^port (\d+)$/m.exec(source.output())?.[1]);
  return { port, [Symbol.asyncDispose]: () => source.close() };
}

const ECHO_PROGRAM = fileURLToPath(new URL('./echo-process.ts', import.meta.url));

export type EchoBackend = AsyncDisposable & {
  readonly pid: number;
  readonly ports: { readonly echo: number; readonly datagrams: number };
};

export async function startEchoBackend(): Promise<EchoBackend> {
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', ECHO_PROGRAM],
    name: 'echo',
    readyWhen: /^ports \d+ \d+$/m,
    mayExit: true,
  });
  const [, echo, datagrams] = /^ports (\d+) (\d+)$/m.exec(child.output()) ?? [];
  const ports = { echo: Number(echo), datagrams: Number(datagrams) };
  return { pid: child.pid, ports, [Symbol.asyncDispose]: () => child.close() };
}
