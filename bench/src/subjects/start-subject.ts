import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { startEnvoy } from './envoy.ts';
import { freePorts } from './free-ports.ts';
import { startHaproxy } from './haproxy.ts';
import { startNginxStream } from './nginx-stream.ts';
import type { BackendPorts, StartableSubjectName, Subject } from './subject.ts';
import { startWeir } from './weir.ts';

export function startSubject(
  name: StartableSubjectName,
  backends: BackendPorts,
  options: { readonly profileDirectory?: string; readonly isInspected?: boolean } = {},
): Promise<Subject> {
  switch (name) {
    case 'weir':
      return startWeir(backends, options);
    case 'weir-limits':
      return startWeir(backends, { ...options, name, limits: 'inactive' });
    case 'weir-2-workers':
      return startWeir(backends, { ...options, name, workers: 2 });
    case 'haproxy':
      return startHaproxy(backends);
    case 'nginx':
      return startNginxStream(backends);
    case 'envoy':
      return startEnvoy(backends);
    case 'pipe':
      return startPipe(backends);
  }
}

const PIPE_PROGRAM = fileURLToPath(new URL('./pipe-process.ts', import.meta.url));

/** Starts the simplest possible proxy on Node: no limits, no metering, one endpoint. */
export async function startPipe(backends: BackendPorts): Promise<Subject> {
  const ports = await freePorts();
  const routes = (['http', 'stream', 'echo'] as const).map((name) => `${ports[name]}:${backends[name]}`);
  const proxy = await spawnProcess({
    command: process.execPath,
    args: [PIPE_PROGRAM, ...routes],
    name: 'pipe-process',
    readyWhen: /^ready$/m,
    mayExit: true,
  });
  return {
    name: 'pipe',
    description: `Node ${process.versions.node}, socket.pipe() both ways`,
    pid: proxy.pid,
    output: proxy.output,
    ports,
    unsupported: { datagrams: 'socket.pipe() relays no datagrams' },
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}
