import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

const program = fileURLToPath(new URL('./echo-process.ts', import.meta.url));

export type Echo = AsyncDisposable & {
  readonly pid: number;
  readonly ports: { readonly echo: number; readonly datagrams: number };
};

export async function startEcho(): Promise<Echo> {
  const child = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', program],
    name: 'echo',
    readyWhen: /^ports \d+ \d+$/m,
    mayExit: true,
  });
  const [, echo, datagrams] = /^ports (\d+) (\d+)$/m.exec(child.output()) ?? [];
  const ports = { echo: Number(echo), datagrams: Number(datagrams) };
  return { pid: child.pid, ports, [Symbol.asyncDispose]: () => child.close() };
}
