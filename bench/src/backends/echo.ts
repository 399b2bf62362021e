import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';

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
