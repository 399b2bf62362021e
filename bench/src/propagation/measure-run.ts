import { randomUUID } from 'node:crypto';
import { startApiEnvironment } from './api-stage.ts';
import { startNamedEndpoint } from './backend.ts';
import { measureChanges, WARM_UP_CHANGES } from './measure.ts';
import { startMemoryEnvironment } from './memory-stage.ts';
import { type EndpointName, loopbackNodes, NAMESPACE_ENDPOINTS, NAMESPACE_NODES } from './places.ts';
import type { PropagationRow } from './propagation-result.ts';
import { startProxies } from './proxies.ts';
import type { PropagationSource } from './source-name.ts';
import type { Environment } from './stage.ts';

export type PropagationRun = { readonly source: PropagationSource; readonly services: number };

export type PropagationRunOptions = {
  readonly redis: string;
  readonly changes: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  readonly profile?: string | undefined;
};

/** In the namespace all backends have the same port. */
const NAMESPACE_ENDPOINT_PORT = 8_080;

/** One size of one source, from the start of everything to its end. Throws when it is not valid. */
export async function measureRun(run: PropagationRun, options: PropagationRunOptions): Promise<PropagationRow> {
  const { redis, changes, signal, say, profile } = options;
  const { source, services } = run;
  const fleet = `bench-${randomUUID().slice(0, 8)}`;
  await using stage = await startEnvironment(run, { redis, fleet });
  await using proxies = await startProxies({ redis, fleet, nodes: stage.stage.nodes, profile });
  say(`${source}, ${services} Services: all proxies serve`);
  const measured = await measureChanges({ environment: stage.stage, proxies, changes, signal });
  const expected = measured.changes.length * stage.stage.nodes.length;
  // A revision that was read together with others, or not at all, would be one that the histogram does not know.
  if (measured.observed.count !== expected) {
    throw new Error(`the proxies have observed ${measured.observed.count} changes, and not ${expected}`);
  }
  say(`${source}, ${services} Services: ${changes} changes, after ${WARM_UP_CHANGES} that do not count`);
  return { ...run, ...measured };
}

async function startEnvironment(
  { source, services }: PropagationRun,
  { redis, fleet }: { readonly redis: string; readonly fleet: string },
): Promise<AsyncDisposable & { readonly stage: Environment }> {
  await using cleanup = new AsyncDisposableStack();
  const backendAt = async (name: EndpointName) => {
    const place =
      source === 'api'
        ? { host: NAMESPACE_ENDPOINTS[name], port: NAMESPACE_ENDPOINT_PORT }
        : { host: '127.0.0.1', port: 0 };
    return cleanup.use(await startNamedEndpoint(name, place)).address;
  };
  const backends = { A: await backendAt('A'), B: await backendAt('B') };
  const stage = cleanup.use(
    source === 'api'
      ? await startApiEnvironment({
          redis,
          fleet,
          nodes: NAMESPACE_NODES,
          services,
          backendPort: NAMESPACE_ENDPOINT_PORT,
        })
      : await startMemoryEnvironment(redis, fleet, { services, nodes: loopbackNodes(), backends }),
  );
  const started = cleanup.move();
  return { stage, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
