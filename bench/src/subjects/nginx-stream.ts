import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { freePorts } from './free-ports.ts';
import { BACKEND_NAMES, type BackendPorts, DATAGRAM_BUFFER_BYTES, type Subject } from './subject.ts';

/** Starts nginx with its stream module, in one process without a master, so that the CPU time of the process is all of nginx's. */
export async function startNginxStream(backends: BackendPorts): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-nginx-stream'));
  const ports = await freePorts();
  const configuration = join(directory.path, 'nginx.conf');
  writeFileSync(configuration, nginxStreamConfiguration({ directory: directory.path, ports, backends }));
  const args = ['-p', directory.path, '-e', 'stderr', '-c', configuration];
  const nginx = cleanup.use(
    await spawnProcess({ command: programPath('nginx-stream'), args, name: 'nginx-stream', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'nginx',
    description: 'nginx stream, 1 process, reuseport',
    pid: nginx.pid,
    output: nginx.output,
    ports,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Returns a configuration for nginx. A relayed connection counts twice in `worker_connections`. nginx sets TCP_NODELAY by default. */
export function nginxStreamConfiguration({
  directory,
  ports,
  backends,
}: {
  readonly directory: string;
  readonly ports: BackendPorts;
  readonly backends: BackendPorts;
}): string {
  const servers = BACKEND_NAMES.map((name) => {
    const parameters =
      name === 'datagrams' ? `udp reuseport rcvbuf=${DATAGRAM_BUFFER_BYTES}` : 'reuseport backlog=4096';
    return `  server { listen 127.0.0.1:${ports[name]} ${parameters}; proxy_pass 127.0.0.1:${backends[name]}; }`;
  });
  return `
daemon off;
master_process off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 19900; }
stream {
  access_log off;
  proxy_connect_timeout 5s;
  proxy_timeout 10m;
${servers.join('\n')}
}
`;
}
