import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { startEnvoy } from './envoy.ts';
import { freePorts } from './free-ports.ts';
import { startHaproxy } from './haproxy.ts';
import { startNginxStream } from './nginx-stream.ts';
import type { BackendPorts, Subject, SubjectName } from './subject.ts';
import { startWeir } from './weir.ts';

export function startSubject(
  name: Exclude<SubjectName, 'direct'>,
  backends: BackendPorts,
  options: { readonly profile?: string; readonly isInspected?: boolean } = {},
): Promise<Subject> {
  switch (name) {
    case 'weir':
      return startWeir(backends, options);
    case 'weir-limits':
      return startWeir(backends, { ...options, name, limits: 'roomy' });
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

/** What the least code gives on Node: no limits, no metering, no second endpoint to try. */
export async function startPipe(backends: BackendPorts): Promise<Subject> {
  const ports = await freePorts();
  const routes = (['answers', 'bulk', 'echo'] as const).map((name) => `${ports[name]}:${backends[name]}`);
  const proxy = await spawnProcess({
    command: process.execPath,
    args: [PIPE_PROGRAM, ...routes],
    name: 'pipe-proxy',
    readyWhen: /^ready$/m,
    mayExit: true,
  });
  return {
    name: 'pipe',
    description: `Node ${process.versions.node}, socket.pipe() both ways`,
    pid: proxy.pid,
    output: proxy.output,
    ports,
    unsupported: { datagrams: 'it has no pipe for datagrams' },
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}
