import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { type PropagationTotals, type ProxyProcesses, startProxies } from '../processes/weir-proxy.ts';
import { startApiEnvironment } from './api-environment.ts';
import type { MemoryControllerRpc } from './memory-controller-process.ts';
import type { PropagationSource } from './options.ts';
import { evaluateResponses, poll } from './polling-client.ts';
import type { PropagationLayout } from './propagation-cluster.ts';
import type { PropagationReading, PropagationReadings } from './propagation-result.ts';
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
  readonly logProgress: (text: string) => void;
  readonly profileDirectory?: string | undefined;
};

/** Port of both backends in the network namespace, where the backends have different addresses. */
const NAMESPACE_ENDPOINT_PORT = 8_080;

/** Starts a controller and proxies for one source and one number of Services, measures, and stops them. Throws if a run is invalid. */
export async function measureRun(run: PropagationRun, options: PropagationRunOptions): Promise<PropagationReadings> {
  const { redis, changes, signal, logProgress, profileDirectory } = options;
  const { source, services } = run;
  const fleet = `bench-${randomUUID().slice(0, 8)}`;
  await using environment = await startEnvironment(run, { redis, fleet });
  await using proxies = await startProxies({ redis, fleet, nodes: environment.nodes, profileDirectory });
  logProgress(`${source}, ${services} Services: all proxies serve`);
  const measured = await measureChanges({ environment, proxies, changes, signal });
  const expected = measured.changes.length * environment.nodes.length;
  // the count is lower than expected if a proxy skipped a revision or read two revisions together
  if (measured.observed.count !== expected) {
    throw new Error(`the metric of the proxies counted ${measured.observed.count} changes instead of ${expected}`);
  }
  logProgress(`${source}, ${services} Services: ${changes} changes after ${WARM_UP_CHANGES} changes of warm-up`);
  return { ...run, ...measured };
}

async function startEnvironment(
  { source, services }: PropagationRun,
  { redis, fleet }: { readonly redis: string; readonly fleet: string },
): Promise<Environment> {
  await using cleanup = new AsyncDisposableStack();
  const backendAt = async (name: EndpointName) => {
    const address =
      source === 'api'
        ? { host: NAMESPACE_ENDPOINTS[name], port: NAMESPACE_ENDPOINT_PORT }
        : { host: '127.0.0.1', port: 0 };
    return cleanup.use(await startNamedEndpoint(name, address)).address;
  };
  const backends = { A: await backendAt('A'), B: await backendAt('B') };
  const environment = cleanup.use(
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
  return { ...environment, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Number of changes before the measurement, because Node still compiles hot code during the first changes. */
export const WARM_UP_CHANGES = 10;
/** Longer than the controller's wait after each change. In production, too, most changes come after this wait. */
const PAUSE_BETWEEN_CHANGES_MS = 20;
const MAX_WRONG_EXAMPLES = 5;

export type MeasureChangesOptions = {
  readonly environment: Environment;
  readonly proxies: ProxyProcesses;
  readonly changes: number;
  readonly signal: AbortSignal;
};

/** Switches the endpoints of Services one after the other. Measures for each change when each proxy uses the new endpoint. */
export async function measureChanges(
  options: MeasureChangesOptions,
): Promise<Pick<PropagationReadings, 'changes' | 'wrongExamples' | 'observed'>> {
  const { environment, proxies, changes, signal } = options;
  const changed = changedServices(environment.services);
  const current: EndpointName[] = changed.map(() => 'A');
  const readings: PropagationReading[] = [];
  const wrongExamples = new Set<string>();
  let before: readonly PropagationTotals[] = [];
  for (let round = -WARM_UP_CHANGES; round < changes; round++) {
    signal.throwIfAborted();
    if (round === 0) before = await proxies.propagationTotals();
    const index = (round + WARM_UP_CHANGES) % changed.length;
    const service = changed[index] ?? 0;
    const from = current[index] ?? 'A';
    const to = from === 'A' ? 'B' : 'A';
    const { reading, wrong } = await measureChange(environment, { service, from, to });
    current[index] = to;
    for (const example of wrong) if (wrongExamples.size < MAX_WRONG_EXAMPLES) wrongExamples.add(example);
    if (round >= 0) readings.push(reading);
    await sleep(PAUSE_BETWEEN_CHANGES_MS);
  }
  const observed = observedBetween(before, await proxies.propagationTotals());
  return { changes: readings, wrongExamples: [...wrongExamples], observed };
}

async function measureChange(
  environment: Environment,
  { service, from, to }: { readonly service: number; readonly from: EndpointName; readonly to: EndpointName },
): Promise<{ readonly reading: PropagationReading; readonly wrong: readonly string[] }> {
  const polls = environment.nodes.map(({ address }) => poll({ host: address, port: servicePort(service) }, to));
  await Promise.all(polls.map(({ firstResponse }) => firstResponse));
  const written = await environment.switchEndpoint(service, to);
  const responses = await Promise.all(polls.map((poll) => poll.responses));
  const evaluations = responses.map((list, index) => {
    const evaluation = evaluateResponses(list, { from, to, ...written });
    if (evaluation !== undefined) return evaluation;
    throw new Error(
      `${environment.nodes[index]?.name} does not use the new endpoint of port ${servicePort(service)}: last response ${list.at(-1)?.text}`,
    );
  });
  const wrong = evaluations.flatMap((evaluation) => evaluation.wrong);
  const reading = {
    ms: evaluations.map(({ ms }) => ms).sort((a, b) => a - b),
    responses: evaluations.reduce((sum, evaluation) => sum + evaluation.responses, 0),
    wrongResponses: wrong.length,
  };
  return { reading, wrong };
}

function observedBetween(
  before: readonly PropagationTotals[],
  after: readonly PropagationTotals[],
): PropagationReadings['observed'] {
  const sum = (list: readonly PropagationTotals[], pick: (each: PropagationTotals) => number): number =>
    list.reduce((total, each) => total + pick(each), 0);
  const count = sum(after, (each) => each.count) - sum(before, (each) => each.count);
  const seconds = sum(after, (each) => each.sumSeconds) - sum(before, (each) => each.sumSeconds);
  return { count, meanMs: (seconds / count) * 1_000 };
}

const CONTROLLER_PROGRAM = new URL('memory-controller-process.ts', import.meta.url);

/**
 * Starts a controller with a source in memory. Replaces an API server, because an API server would need minutes to store ten thousand
 * Services.
 */
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
      const startedAt = monotonicMs();
      return { startedAt, writtenAt: await controller.call('switchEndpoint', service, to) };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

export type NamedEndpoint = AsyncDisposable & { readonly name: EndpointName; readonly address: SocketAddress };

/** Starts a server that sends `name` to every client and closes the connection. */
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
