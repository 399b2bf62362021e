import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { freePorts } from './free-ports.ts';
import type { BackendPorts, Subject } from './subject.ts';

const PIPE_PROGRAM = fileURLToPath(new URL('./pipe-proxy.ts', import.meta.url));

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
