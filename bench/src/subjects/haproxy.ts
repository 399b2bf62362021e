import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { descriptorLimit, maxIdleConnections } from '../measure/proc-stats.ts';
import { freePorts } from './free-ports.ts';
import type { BackendPorts, Subject } from './subject.ts';

/** Starts HAProxy in TCP mode, with one thread and with permission to use splice(2). */
export async function startHaproxy(backends: BackendPorts): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-haproxy'));
  const ports = await freePorts();
  const configuration = join(directory.path, 'haproxy.cfg');
  writeFileSync(
    configuration,
    haproxyConfiguration({ ports, backends, connections: maxIdleConnections(descriptorLimit()) }),
  );
  const path = programPath('haproxy');
  const haproxy = cleanup.use(
    await spawnProcess({ command: path, args: ['-db', '-f', configuration], name: 'haproxy', mayExit: true }),
  );
  const started = cleanup.move();
  return {
    name: 'haproxy',
    description: 'HAProxy, mode tcp, 1 thread, splice-auto',
    pid: haproxy.pid,
    output: haproxy.output,
    ports,
    unsupported: { datagrams: 'HAProxy relays no UDP' },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/**
 * Returns a configuration for this number of connections. HAProxy does not start if `maxconn` and the pipes for splice(2) exceed the
 * descriptor limit. HAProxy sets TCP_NODELAY by default.
 */
export function haproxyConfiguration({
  ports,
  backends,
  connections,
}: {
  readonly ports: BackendPorts;
  readonly backends: BackendPorts;
  readonly connections: number;
}): string {
  return `
global
  nbthread 1
  maxconn ${connections + 100}
  maxpipes 64
defaults
  mode tcp
  option splice-auto
  backlog 4096
  timeout connect 5s
  timeout client 10m
  timeout server 10m
${(['http', 'stream', 'echo'] as const)
  .map(
    (name) => `listen ${name}
  bind 127.0.0.1:${ports[name]}
  server backend 127.0.0.1:${backends[name]}`,
  )
  .join('\n')}
`;
}
