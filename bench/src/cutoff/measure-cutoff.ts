import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { RpcProcess } from '../processes/rpc.ts';
import { type CutoffFleet, type Part, startCutoffFleet } from './cutoff-fleet.ts';
import type { CutoffReading, RestartReading } from './cutoff-result.ts';
import type { OtherClients } from './other-clients-process.ts';
import { type Away, type CutoffScenario, END_TIMEOUT_MS, SUSPEND } from './scenarios.ts';
import type { TargetClients } from './target-clients-process.ts';
import {
  type BenchNode,
  type ConnectionKind,
  KIND_SHARES,
  OTHER_ENDPOINT,
  OTHER_PORT,
  TARGET_ENDPOINT,
  TARGET_TENANT,
} from './topology.ts';

/** The fleet with the clients and endpoints of both tenants. */
export type CutoffBench = AsyncDisposable & {
  readonly fleet: CutoffFleet;
  readonly target: RpcProcess<TargetClients>;
  readonly others: RpcProcess<OtherClients>;
};

const OTHER_CONNECTIONS_PER_PROXY = 10;
const TARGET_ENDPOINT_PROGRAM = new URL('target-endpoint-process.ts', import.meta.url);
const OTHER_ENDPOINT_PROGRAM = new URL('other-endpoint-process.ts', import.meta.url);
const TARGET_CLIENTS_PROGRAM = new URL('target-clients-process.ts', import.meta.url);
const OTHER_CLIENTS_PROGRAM = new URL('other-clients-process.ts', import.meta.url);

/** Starts all processes. Resolves when every proxy serves both tenants. */
export async function startCutoffBench(nodes: readonly BenchNode[]): Promise<CutoffBench> {
  await using cleanup = new AsyncDisposableStack();
  const fleet = cleanup.use(await startCutoffFleet(nodes));
  cleanup.use(await startEndpoint(TARGET_ENDPOINT_PROGRAM, TARGET_ENDPOINT));
  cleanup.use(await startEndpoint(OTHER_ENDPOINT_PROGRAM, OTHER_ENDPOINT, String(OTHER_PORT)));
  await fleet.start('controller', 'console', ...proxiesOf(fleet));
  const target = cleanup.use(new RpcProcess<TargetClients>(TARGET_CLIENTS_PROGRAM, []));
  const others = cleanup.use(new RpcProcess<OtherClients>(OTHER_CLIENTS_PROGRAM, []));
  const hosts = hostsOf(fleet);
  await target.call('awaitServed', hosts);
  await others.call('open', hosts, OTHER_CONNECTIONS_PER_PROXY);
  const started = cleanup.move();
  return { fleet, target, others, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

function startEndpoint(program: URL, ...args: readonly string[]): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', fileURLToPath(program), ...args],
    name: basename(program.pathname),
    readyWhen: /listening/,
  });
}

export type MeasureCutoffOptions = {
  readonly connections: number;
  readonly rounds: number;
  readonly signal: AbortSignal;
  readonly onReading: (reading: CutoffReading, round: number) => void;
};

/** Time in which the connections are open and quiet, and the latencies of the other tenant before the cut-off are measured. */
const QUIET_MS = 2_000;

export async function measureCutoff(
  bench: CutoffBench,
  scenario: CutoffScenario,
  { connections, rounds, signal, onReading }: MeasureCutoffOptions,
): Promise<readonly CutoffReading[]> {
  const { fleet } = bench;
  const readings: CutoffReading[] = [];
  await takeAway(fleet, scenario.away);
  for (let round = 1; round <= rounds; round++) {
    signal.throwIfAborted();
    const reading = await measureRound(bench, scenario, connections);
    readings.push(reading);
    onReading(reading, round);
  }
  await bringBack(fleet, scenario.away);
  return readings;
}

async function measureRound(
  { fleet, target, others }: CutoffBench,
  scenario: CutoffScenario,
  connections: number,
): Promise<CutoffReading> {
  const hosts = hostsOf(fleet);
  await target.call('awaitServed', hosts);
  await target.call('open', hosts, countsFor(connections / hosts.length));
  await others.call('report');
  await sleep(QUIET_MS);
  const before = await others.call('report');
  const { startedAt, commandMs } = await scenario.cutOff(fleet, target);
  const measured = [...startedAt.keys()].filter((proxy) => startedAt[proxy] !== undefined);
  const ends = await target.call('readEnds', measured, END_TIMEOUT_MS);
  const during = await others.call('report');
  await target.call('close');
  await scenario.lift(fleet);
  return { connections: ends, startedAt: startedAt.map((at) => at ?? Number.NaN), commandMs, before, during };
}

/** Suspends the target, kills all processes, starts them again, proxies first, and lifts the cut-off. */
export async function measureRestart({ fleet, target, others }: CutoffBench): Promise<RestartReading> {
  const hosts = hostsOf(fleet);
  const proxies = proxiesOf(fleet);
  await target.call('awaitServed', hosts);
  await fleet.weir(...SUSPEND);
  await target.call('awaitRefused', hosts);
  await others.call('close');
  await target.call('startAttempts', hosts);
  const kill = { signal: 'SIGKILL' } as const;
  await Promise.all([
    fleet.kill('controller', 'console', ...proxies),
    fleet.redis.stop(kill),
    fleet.cluster.stopApiServer(kill),
  ]);
  await fleet.start(...proxies);
  await fleet.redis.start();
  await fleet.cluster.startApiServer();
  await fleet.start('controller', 'console');
  await sleep(QUIET_MS);
  const attempts = await target.call('stopAttempts');
  await fleet.weir('resume', TARGET_TENANT);
  const resumed = await target.call('awaitServed', hosts).then(
    () => true,
    () => false,
  );
  return { ...attempts, resumed };
}

/** Returns the number of connections of each kind through one proxy. */
function countsFor(connections: number): Readonly<Record<ConnectionKind, number>> {
  const count = (kind: ConnectionKind): number => Math.round(connections * KIND_SHARES[kind]);
  return { tcp: count('tcp'), websocket: count('websocket'), http2: count('http2'), udp: count('udp') };
}

async function takeAway(fleet: CutoffFleet, away: readonly Away[]): Promise<void> {
  if (away.includes('controller')) await fleet.stop('controller');
  if (away.includes('api-server')) await fleet.cluster.stopApiServer({ signal: 'SIGKILL' });
  if (away.includes('redis')) await fleet.redis.stop();
}

async function bringBack(fleet: CutoffFleet, away: readonly Away[]): Promise<void> {
  if (away.includes('redis')) await fleet.redis.start();
  if (away.includes('api-server')) await fleet.cluster.startApiServer();
  if (away.includes('controller')) await fleet.start('controller');
}

function proxiesOf({ nodes }: CutoffFleet): readonly Part[] {
  return nodes.map(({ name }) => name as Part);
}

function hostsOf({ nodes }: CutoffFleet): readonly string[] {
  return nodes.map(({ address }) => address);
}
