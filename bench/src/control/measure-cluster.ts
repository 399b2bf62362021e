import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../measure/statistics.ts';
import { RpcProcess } from '../processes/rpc.ts';
import {
  type ChangeReading,
  type ChangeReadings,
  type ControllerStartReadings,
  TARGET_FOLLOWERS,
} from './control-result.ts';
import type { ControllerRpc, ControllerStart } from './controller-process.ts';
import { FollowerPool } from './follower-pool.ts';
import type { ChangeScenario } from './options.ts';

export type ClusterMeasurement = {
  readonly start: ControllerStartReadings;
  readonly changes: readonly ChangeReadings[];
  /** The error that ended the measurement early; absent if the measurement is complete. */
  readonly failure?: string;
};

export type ClusterMeasurementOptions = {
  /** URL of Redis. */
  readonly url: string;
  readonly services: number;
  readonly followers: number;
  readonly rounds: number;
  readonly starts: number;
  readonly scenarios: readonly ChangeScenario[];
  readonly signal: AbortSignal;
  readonly logProgress: (text: string) => void;
};

type ControlRun = {
  readonly controller: RpcProcess<ControllerRpc>;
  readonly followers: FollowerPool;
  readonly options: ClusterMeasurementOptions;
};

/**
 * Measures one size of the cluster. Starts a controller several times, each time in a new fleet, and then measures changes in the last
 * fleet. Throws if a controller does not start. After a later failure, returns the earlier readings, and the reason in `failure`.
 */
export async function measureCluster(options: ClusterMeasurementOptions): Promise<ClusterMeasurement> {
  const { url, services, starts, signal, logProgress } = options;
  const controllers: ControllerStart[] = [];
  for (let start = 1; start < starts; start++) {
    signal.throwIfAborted();
    await using transient = startControllerProcess(options, start);
    controllers.push(await transient.call('start'));
  }
  await using controller = startControllerProcess(options, starts);
  controllers.push(await controller.call('start'));
  const startTimes = controllers.map(({ ms }) => ms.toFixed(0)).join(', ');
  logProgress(`${services} Services: the controller started in ${startTimes} ms`);
  await using followers = new FollowerPool(url, fleetName(services, starts));
  const [followerMs = Number.NaN] = await followers.growTo(1);
  const start = { services, controllers, followerMs, followerBytes: await followers.receivedBytes() };
  const changes: ChangeReadings[] = [];
  try {
    await measureChanges({ controller, followers, options }, changes);
    return { start: { ...start, afterKiB: await controller.call('residentKiB') }, changes };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { start, changes, failure: `${services} Services: ${reason}` };
  }
}

/**
 * Measures all scenarios and appends the readings to `changes`. If the function throws, the readings up to the error stay in `changes`,
 * with `isVerified` false.
 */
async function measureChanges(run: ControlRun, changes: ChangeReadings[]): Promise<void> {
  const { controller, followers, options } = run;
  const { services, rounds, scenarios, logProgress } = options;
  const sizes = scenarios.length > 0 ? [Math.min(TARGET_FOLLOWERS, options.followers), options.followers] : [];
  // Not reset between scenarios: with a number that was used before, a change could set a value that the cluster already has.
  let round = 0;
  for (const size of new Set(sizes)) {
    if (size > followers.size) await followers.growTo(size);
    const firstChange = changes.length;
    for (const scenario of scenarios) {
      const readings = await measureScenario(scenario, run, round);
      round += rounds;
      changes.push({ services, followers: size, scenario, changes: readings, isVerified: false });
      const allMs = median(readings.map((reading) => reading.allMs));
      logProgress(
        `${services} Services, ${size} followers, ${scenario}: all applied after ${allMs.toFixed(1)} ms (median)`,
      );
    }
    await followers.verifyTables(await controller.call('digest'));
    const verified = changes.slice(firstChange).map((readings) => ({ ...readings, isVerified: true }));
    changes.splice(firstChange, verified.length, ...verified);
  }
}

/** Longer than the controller's wait after each change. In production, too, most changes come after this wait. */
const PAUSE_BETWEEN_CHANGES_MS = 20;

async function measureScenario(
  scenario: ChangeScenario,
  { controller, followers, options }: ControlRun,
  firstRound: number,
): Promise<ChangeReading[]> {
  const readings: ChangeReading[] = [];
  for (let round = firstRound; readings.length < options.rounds; round++) {
    options.signal.throwIfAborted();
    await sleep(PAUSE_BETWEEN_CHANGES_MS);
    const bytesBefore = await followers.receivedBytes();
    const published = await controller.call('change', scenario, round);
    const appliedAt: (readonly number[])[] = [];
    for (const { revision } of published) appliedAt.push(await followers.appliedAt(revision));
    const receivedBytes = ((await followers.receivedBytes()) - bytesBefore) / followers.size / published.length;
    published.forEach(({ at, bytes }, index) => {
      const times = (appliedAt[index] ?? []).map((time) => time - at);
      readings.push({ halfMs: median(times), allMs: Math.max(...times), sentBytes: bytes, receivedBytes });
    });
  }
  return readings;
}

const CONTROLLER_PROGRAM = new URL('controller-process.ts', import.meta.url);

function startControllerProcess(
  { url, services }: ClusterMeasurementOptions,
  start: number,
): RpcProcess<ControllerRpc> {
  return new RpcProcess<ControllerRpc>(CONTROLLER_PROGRAM, [url, fleetName(services, start), services]);
}

function fleetName(services: number, start: number): string {
  return `bench-${services}-${start}`;
}
