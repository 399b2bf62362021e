import { fileURLToPath } from 'node:url';
import { freePort, spawnProcess } from '@weir/testkit';
import type { Ports, Subject } from './subject.ts';

const program = fileURLToPath(new URL('./pipe-proxy.ts', import.meta.url));

/** What the least code gives on Node: no limits, no metering, no second endpoint to try. */
export async function startPipe(backends: Ports): Promise<Subject> {
  const ports = { answers: await freePort(), bulk: await freePort() };
  const routes = [`${ports.answers}:${backends.answers}`, `${ports.bulk}:${backends.bulk}`];
  const proxy = await spawnProcess({
    command: process.execPath,
    args: [program, ...routes],
    name: 'pipe-proxy',
    readyWhen: /^ready$/m,
    mayExit: true,
  });
  return {
    name: 'pipe',
    description: `Node ${process.versions.node}, socket.pipe() both ways`,
    pid: proxy.pid,
    ports,
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}
