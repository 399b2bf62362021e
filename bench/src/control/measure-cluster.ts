import { setTimeout as pause } from 'node:timers/promises';
import { median } from '../measure/statistics.ts';
import { RpcProcess } from '../processes/rpc.ts';
import type { ChangeRow, ControlChangeReading, ControllerStartRow } from './control-result.ts';
import { TARGET_FOLLOWERS } from './control-result.ts';
import type { ControllerRpc, ControllerStart } from './controller-process.ts';
import { FollowerPool } from './follower-pool.ts';
import type { ChangeScenario } from './options.ts';

export type ClusterMeasurement = {
  readonly start: ControllerStartRow;
  readonly changes: readonly ChangeRow[];
  /** What ended it before its time, in words. */
  readonly failure?: string;
};

export type ClusterMeasurementOptions = {
  readonly url: string;
  readonly services: number;
  readonly followers: number;
  readonly rounds: number;
  readonly starts: number;
  readonly scenarios: readonly ChangeScenario[];
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
};

const CONTROLLER_PROGRAM = new URL('controller-process.ts', import.meta.url);
/** So that the loop's gap after the change before is over, as it mostly is in life. */
const PAUSE_BETWEEN_CHANGES_MS = 20;

type ControlRun = {
  readonly controller: RpcProcess<ControllerRpc>;
  readonly followers: FollowerPool;
  readonly options: ClusterMeasurementOptions;
};

/**
 * One size of the cluster: starts, each in a fleet of its own, and in the last of them the changes. Throws when it does not start;
 * what fails later leaves what was measured before.
 */
export async function measureCluster(options: ClusterMeasurementOptions): Promise<ClusterMeasurement> {
  const { url, services, starts, signal, say } = options;
  const controllers: ControllerStart[] = [];
  for (let nth = 1; nth < starts; nth++) {
    signal.throwIfAborted();
    await using passing = startControllerProcess(options, nth);
    controllers.push(await passing.call('start'));
  }
  await using controller = startControllerProcess(options, starts);
  controllers.push(await controller.call('start'));
  say(`${services} Services: the controller started in ${controllers.map(({ ms }) => ms.toFixed(0)).join(', ')} ms`);
  await using followers = new FollowerPool(url, fleetName(services, starts));
  const [followerMs = Number.NaN] = await followers.growTo(1);
  const start = { services, controllers, followerMs, followerBytes: await followers.receivedBytes() };
  const changes: ChangeRow[] = [];
  try {
    await measureChanges({ controller, followers, options }, changes);
    return { start: { ...start, afterKiB: await controller.call('residentKiB') }, changes };
  } catch (error) {
    return {
      start,
      changes,
      failure: `${services} Services: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** Into `changes`, also those of a crew that is not proved in the end. */
async function measureChanges(stage: ControlRun, changes: ChangeRow[]): Promise<void> {
  const { controller, followers: crew, options } = stage;
  const { services, followers, rounds, scenarios, say } = options;
  // rounds go on counting, so that no change says what is said already
  let round = 0;
  for (const size of new Set(scenarios.length > 0 ? [Math.min(TARGET_FOLLOWERS, followers), followers] : [])) {
    if (size > crew.size) await crew.growTo(size);
    const first = changes.length;
    for (const scenario of scenarios) {
      const readings = await measureScenario(scenario, stage, round);
      round += rounds;
      changes.push({ services, followers: size, scenario, changes: readings, isProved: false });
      const all = median(readings.map(({ allMs }) => allMs));
      say(`${services} Services, ${size} followers, ${scenario}: all have it after ${all.toFixed(1)} ms (median)`);
    }
    await crew.verifyTables(await controller.call('digest'));
    changes.splice(first, changes.length, ...changes.slice(first).map((row) => ({ ...row, isProved: true })));
  }
}

async function measureScenario(
  scenario: ChangeScenario,
  { controller, followers, options }: ControlRun,
  first: number,
): Promise<ControlChangeReading[]> {
  const readings: ControlChangeReading[] = [];
  for (let round = first; readings.length < options.rounds; round++) {
    options.signal.throwIfAborted();
    await pause(PAUSE_BETWEEN_CHANGES_MS);
    const before = await followers.receivedBytes();
    const made = await controller.call('change', scenario, round);
    const applied: (readonly number[])[] = [];
    for (const { revision } of made) applied.push(await followers.appliedAt(revision));
    const receivedBytes = ((await followers.receivedBytes()) - before) / followers.size / made.length;
    made.forEach(({ at, bytes }, index) => {
      const times = (applied[index] ?? []).map((time) => time - at);
      readings.push({ halfMs: median(times), allMs: Math.max(...times), sentBytes: bytes, receivedBytes });
    });
  }
  return readings;
}

function startControllerProcess({ url, services }: ClusterMeasurementOptions, nth: number): RpcProcess<ControllerRpc> {
  return new RpcProcess<ControllerRpc>(CONTROLLER_PROGRAM, [url, fleetName(services, nth), services]);
}

function fleetName(services: number, nth: number): string {
  return `bench-${services}-${nth}`;
}
