import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { type PropagationTotals, type ProxyProcesses, startProxies } from '../processes/weir-proxy.ts';
import { startApiEnvironment } from './api-environment.ts';
import type { MemoryControllerRpc } from './memory-controller-process.ts';
import type { PropagationSource } from './options.ts';
import { evaluateResponses, poll } from './polling-client.ts';
import type { PropagationLayout } from './propagation-cluster.ts';
import type { PropagationReading, PropagationRow } from './propagation-result.ts';
import {
  changedServices,
  type EndpointName,
  type Environment,
  loopbackNodes,
  NAMESPACE_ENDPOINTS,
  NAMESPACE_NODES,
  type SocketAddress,
  servicePort,
} from './topology.ts';

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

/** These do not count: Node's compiler is at work on what is new to it. */
export const WARM_UP_CHANGES = 10;
/** So that the loop's gap after the change before is over, as it mostly is in life. */
const PAUSE_BETWEEN_CHANGES_MS = 20;
const MAX_WRONG_EXAMPLES = 5;

export type MeasureChangesOptions = {
  readonly environment: Environment;
  readonly proxies: ProxyProcesses;
  readonly changes: number;
  readonly signal: AbortSignal;
};

/** Moves the endpoints of Services to and fro, one after the other, and looks when each proxy answers by it. */
export async function measureChanges(
  options: MeasureChangesOptions,
): Promise<Pick<PropagationRow, 'changes' | 'wrong' | 'observed'>> {
  const { environment, proxies, changes, signal } = options;
  const changed = changedServices(environment.services);
  const at: EndpointName[] = changed.map(() => 'A');
  const readings: PropagationReading[] = [];
  const wrong = new Set<string>();
  let before: readonly PropagationTotals[] = [];
  for (let round = -WARM_UP_CHANGES; round < changes; round++) {
    signal.throwIfAborted();
    if (round === 0) before = await proxies.propagationTotals();
    const turn = (round + WARM_UP_CHANGES) % changed.length;
    const service = changed[turn] ?? 0;
    const from = at[turn] ?? 'A';
    const to = from === 'A' ? 'B' : 'A';
    const { reading, words } = await measureChange(environment, { service, from, to });
    at[turn] = to;
    for (const text of words) if (wrong.size < MAX_WRONG_EXAMPLES) wrong.add(text);
    if (round >= 0) readings.push(reading);
    await pause(PAUSE_BETWEEN_CHANGES_MS);
  }
  return { changes: readings, wrong: [...wrong], observed: observedBetween(before, await proxies.propagationTotals()) };
}

async function measureChange(
  stage: Environment,
  { service, from, to }: { readonly service: number; readonly from: EndpointName; readonly to: EndpointName },
): Promise<{ readonly reading: PropagationReading; readonly words: readonly string[] }> {
  const pollings = stage.nodes.map(({ address }) => poll({ host: address, port: servicePort(service) }, to));
  await Promise.all(pollings.map(({ firstResponse }) => firstResponse));
  const written = await stage.switchEndpoint(service, to);
  const answers = await Promise.all(pollings.map((each) => each.responses));
  const verdicts = answers.map((list, index) => {
    const verdict = evaluateResponses(list, { from, to, ...written });
    if (verdict !== undefined) return verdict;
    throw new Error(
      `${stage.nodes[index]?.name} does not answer by a change of port ${servicePort(service)}: ${list.at(-1)?.said}`,
    );
  });
  const words = verdicts.flatMap((verdict) => verdict.wrong);
  const reading = {
    ms: verdicts.map(({ ms }) => ms).sort((a, b) => a - b),
    answers: verdicts.reduce((sum, verdict) => sum + verdict.answers, 0),
    wrong: words.length,
  };
  return { reading, words };
}

function observedBetween(
  before: readonly PropagationTotals[],
  after: readonly PropagationTotals[],
): PropagationRow['observed'] {
  const sum = (list: readonly PropagationTotals[], pick: (each: PropagationTotals) => number): number =>
    list.reduce((total, each) => total + pick(each), 0);
  const count = sum(after, (each) => each.count) - sum(before, (each) => each.count);
  const seconds = sum(after, (each) => each.sumSeconds) - sum(before, (each) => each.sumSeconds);
  return { count, meanMs: (seconds / count) * 1_000 };
}

const CONTROLLER_PROGRAM = new URL('memory-controller-process.ts', import.meta.url);

/** In the place of an API server, which takes minutes to be filled with ten thousand Services. */
export async function startMemoryEnvironment(
  redis: string,
  fleet: string,
  layout: PropagationLayout,
): Promise<Environment> {
  await using cleanup = new AsyncDisposableStack();
  const controller = cleanup.use(
    new RpcProcess<MemoryControllerRpc>(CONTROLLER_PROGRAM, [redis, fleet, JSON.stringify(layout)]),
  );
  await controller.call('start');
  const started = cleanup.move();
  const { nodes, services } = layout;
  return {
    nodes,
    services,
    async switchEndpoint(service, to) {
      const beganAt = monotonicMs();
      return { beganAt, writtenAt: await controller.call('move', service, to) };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

export type NamedEndpoint = AsyncDisposable & { readonly name: EndpointName; readonly address: SocketAddress };

/** Says its name to whoever connects, and nothing else. */
export async function startNamedEndpoint(name: EndpointName, { host, port }: SocketAddress): Promise<NamedEndpoint> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(name);
  });
  server.listen({ host, port, backlog: 511 });
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    name,
    address: { host, port: address.port },
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}
