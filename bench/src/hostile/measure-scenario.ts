import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '@weir/testkit';
import { RESPONSE_BODY, startEchoBackend, startHttpBackend } from '../backends/start-backends.ts';
import { RELAY_CHECKS } from '../l4/relay-checks.ts';
import { BROWSER_FIELDS, requestText } from '../l7/requests.ts';
import { runOpenLoop } from '../load/generators.ts';
import { cpuTimeOf, peakResidentKiB } from '../measure/proc-stats.ts';
import { startStandalone } from '../subjects/weir.ts';
import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { HostileReading, LatencyMs } from './hostile-result.ts';
import type { CalmTraffic, HostileScenario } from './scenarios.ts';

/** Rate of the other tenant's messages. Low, so that the generator sleeps between two messages and leaves its processor to Weir. */
const MESSAGES_PER_SECOND = 250;
const CONNECTIONS = 16;
/** The attack starts this long after the start of the generator, when the generator is counting latencies. */
const ATTACK_DELAY_MS = 1_000;
/** The latencies of a measurement in which connections of the other tenant end, or too many messages wait. */
const FAILED: LatencyMs = { p50: 1_000, p99: 1_000 };

export type ScenarioRun = {
  readonly rounds: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
  onReading(reading: HostileReading, round: number): void;
};

/** Starts Weir with one worker, and measures a tenant with plain TCP connections without and with the attack in each round. */
export async function measureScenario(scenario: HostileScenario, run: ScenarioRun): Promise<HostileReading[]> {
  const { rounds, seconds, signal, onReading } = run;
  await using cleanup = new AsyncDisposableStack();
  const calm = cleanup.use(await startCalmTenant(scenario.traffic));
  const attacker = cleanup.use(await scenario.start());
  const weir = cleanup.use(await startStandalone(`${calm.manifests}---\n${attacker.manifests}`, { workers: 1 }));
  await RELAY_CHECKS[calm.backend](calm.port, () => {});
  const { pid } = weir.process;
  const workerEnds = (): number => weir.process.output().split('worker ended').length - 1;
  const readings: HostileReading[] = [];
  for (let round = 1; round <= rounds; round++) {
    signal.throwIfAborted();
    await untilIdle(pid);
    const quiet = await measureLatency(calm, seconds);
    await attacker.arm(pid);
    await untilIdle(pid);
    const before = { cpu: cpuTimeOf(pid), residentKiB: restartPeak(pid), workerEnds: workerEnds() };
    const [attacked, accepted] = await Promise.all([
      measureLatency(calm, seconds),
      setTimeout(ATTACK_DELAY_MS).then(() => attacker.attack(seconds)),
    ]);
    const { userMs, systemMs } = cpuTimeOf(pid);
    const memoryMiB = (peakResidentKiB(pid) - before.residentKiB) / 1024;
    await attacker.disarm();
    const reading = {
      quiet,
      attacked,
      cpuSeconds: (userMs + systemMs - before.cpu.userMs - before.cpu.systemMs) / 1000,
      memoryMiB,
      workerEnds: workerEnds() - before.workerEnds,
      accepted,
      bounded: attacker.bounded?.() ?? [],
    };
    readings.push(reading);
    onReading(reading, round);
  }
  return readings;
}

type CalmTenant = AsyncDisposable & {
  readonly manifests: string;
  readonly port: number;
  readonly backend: 'echo' | 'http';
};

async function startCalmTenant(traffic: CalmTraffic): Promise<CalmTenant> {
  const port = await freePort();
  const name = traffic === 'messages' ? 'echo' : 'http';
  const backend = traffic === 'messages' ? await startEchoBackend() : await startHttpBackend();
  const target = 'ports' in backend ? backend.ports.echo : backend.port;
  const application = traffic === 'messages' ? {} : { appProtocol: 'http' };
  return {
    manifests: serviceManifest(
      { name, namespace: 'calm', protocol: 'TCP', port, ...application },
      { target, addresses: ['127.0.0.1'] },
    ),
    port,
    backend: name,
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

const REQUEST = {
  text: requestText({ host: 'calm.example', path: '/', fields: BROWSER_FIELDS }),
  expectedBody: RESPONSE_BODY,
};

async function measureLatency({ port, backend }: CalmTenant, seconds: number): Promise<LatencyMs> {
  try {
    const traffic = backend === 'http' ? { request: REQUEST } : {};
    const report = await runOpenLoop({
      ...traffic,
      port,
      rate: MESSAGES_PER_SECOND,
      seconds,
      connections: CONNECTIONS,
    });
    return report.kind === 'measured' ? { p50: report.p50 / 1000, p99: report.p99 / 1000 } : FAILED;
  } catch {
    return FAILED;
  }
}

const IDLE_INTERVAL_MS = 500;
const MAX_IDLE_SHARE = 0.1;
const MAX_BUSY_INTERVALS = 120;

/** Waits until the process hardly uses CPU time, so that the work of one measurement is not part of the next. */
async function untilIdle(pid: number): Promise<void> {
  const cpuMs = (): number => cpuTimeOf(pid).userMs + cpuTimeOf(pid).systemMs;
  for (let interval = 0, before = cpuMs(); interval < MAX_BUSY_INTERVALS; interval++) {
    await setTimeout(IDLE_INTERVAL_MS);
    const now = cpuMs();
    if (now - before <= IDLE_INTERVAL_MS * MAX_IDLE_SHARE) return;
    before = now;
  }
  throw new Error('Weir stays busy after the attack');
}

/** Makes `peakResidentKiB` start from the present resident memory, see clear_refs in proc_pid_clear_refs(5). Returns that memory. */
function restartPeak(pid: number): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return peakResidentKiB(pid);
}
