import type { BackendPorts } from '../subjects/subject.ts';
import { startBulkSource } from './bulk-source.ts';
import { startEchoBackend } from './echo.ts';
import { startHttpBackend } from './nginx.ts';

/** All that the proxies stand in front of. `pid`: of the process that echoes. */
export type Backends = AsyncDisposable & { readonly ports: BackendPorts; readonly pid: number };

export async function startBackends(): Promise<Backends> {
  await using cleanup = new AsyncDisposableStack();
  const nginx = cleanup.use(await startHttpBackend());
  const source = cleanup.use(await startBulkSource());
  const echo = cleanup.use(await startEchoBackend());
  const started = cleanup.move();
  return {
    ports: { answers: nginx.port, bulk: source.port, ...echo.ports },
    pid: echo.pid,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
