import { randomUUID } from 'node:crypto';
import { apiStage } from './api-stage.ts';
import { startBackend } from './backend.ts';
import { measurePropagation, warmUp } from './measure.ts';
import { memoryStage } from './memory-stage.ts';
import { type BackendName, loopbackNodes, namespaceBackends, namespaceNodes } from './places.ts';
import type { PropagationRow } from './propagation-result.ts';
import { startProxies } from './proxies.ts';
import type { PropagationSource } from './source-name.ts';
import type { Stage } from './stage.ts';

export type Run = { readonly source: PropagationSource; readonly services: number };

export type RunOptions = {
  readonly redis: string;
  readonly changes: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  readonly profile?: string | undefined;
};

/** In the namespace all backends have the same port. */
const backendPort = 8_080;

/** One size of one source, from the start of everything to its end. Throws when it is not valid. */
export async function measureRun(run: Run, options: RunOptions): Promise<PropagationRow> {
  const { redis, changes, signal, say, profile } = options;
  const { source, services } = run;
  const fleet = `bench-${randomUUID().slice(0, 8)}`;
  await using stage = await startStage(run, { redis, fleet });
  await using proxies = await startProxies({ redis, fleet, nodes: stage.stage.nodes, profile });
  say(`${source}, ${services} Services: all proxies serve`);
  const measured = await measurePropagation({ stage: stage.stage, proxies, changes, signal });
  const expected = measured.changes.length * stage.stage.nodes.length;
  // A revision that was read together with others, or not at all, would be one that the histogram does not know.
  if (measured.observed.count !== expected) {
    throw new Error(`the proxies have observed ${measured.observed.count} changes, and not ${expected}`);
  }
  say(`${source}, ${services} Services: ${changes} changes, after ${warmUp} that do not count`);
  return { ...run, ...measured };
}

async function startStage(
  { source, services }: Run,
  { redis, fleet }: { readonly redis: string; readonly fleet: string },
): Promise<AsyncDisposable & { readonly stage: Stage }> {
  await using cleanup = new AsyncDisposableStack();
  const backendAt = async (name: BackendName) => {
    const place =
      source === 'api' ? { host: namespaceBackends[name], port: backendPort } : { host: '127.0.0.1', port: 0 };
    return cleanup.use(await startBackend(name, place)).place;
  };
  const backends = { A: await backendAt('A'), B: await backendAt('B') };
  const stage = cleanup.use(
    source === 'api'
      ? await apiStage({ redis, fleet, nodes: namespaceNodes, services, backendPort })
      : await memoryStage(redis, fleet, { services, nodes: loopbackNodes(), backends }),
  );
  const started = cleanup.move();
  return { stage, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
