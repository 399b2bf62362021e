import type { Ports } from '../subjects/subject.ts';
import { startBulkSource } from './bulk-source.ts';
import { startEcho } from './echo.ts';
import { startNginx } from './nginx.ts';

/** All that the proxies stand in front of. `pid`: of the process that echoes. */
export type Backends = AsyncDisposable & { readonly ports: Ports; readonly pid: number };

export async function startBackends(): Promise<Backends> {
  await using cleanup = new AsyncDisposableStack();
  const nginx = cleanup.use(await startNginx());
  const source = cleanup.use(await startBulkSource());
  const echo = cleanup.use(await startEcho());
  const started = cleanup.move();
  return {
    ports: { answers: nginx.port, bulk: source.port, ...echo.ports },
    pid: echo.pid,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
