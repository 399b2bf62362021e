import { startRedis } from '@weir/tools';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { saveOrExplain } from '../report/save-result.ts';
import {
  type ControlResult,
  controlChangeTable,
  controllerStartTable,
  summarizeChanges,
  summarizeControllerStart,
} from './control-result.ts';
import { type ClusterMeasurement, measureCluster } from './measure-cluster.ts';
import { CONTROL_DEFAULTS, CONTROL_SCENARIOS, type ControlOptions } from './options.ts';

const STARTS_PER_SIZE = 3;

/** Returns the exit code: 1 if a measurement failed. The result still contains the readings from before the failure. */
export async function benchmarkControl(options: ControlOptions, signal: AbortSignal): Promise<number> {
  const { services, followers, rounds, scenarios = CONTROL_SCENARIOS } = options;
  const endRun = startRun({ redis: await provideRedis() });
  const measurements: ClusterMeasurement[] = [];
  const failures: string[] = [];
  for (const count of services) {
    // each cluster size gets a new Redis; as in production, Redis writes acknowledged data to disk
    await using redis = await startRedis();
    try {
      const measurement = await measureCluster({
        url: redis.url,
        services: count,
        followers,
        rounds,
        scenarios: scenarios.filter((name) => name !== 'start'),
        starts: scenarios.includes('start') ? STARTS_PER_SIZE : 1,
        signal,
        logProgress,
      });
      measurements.push(measurement);
      if (measurement.failure !== undefined) failures.push(measurement.failure);
    } catch (error) {
      failures.push(`${count} Services: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (signal.aborted) break;
  }
  const result: ControlResult = {
    ...endRun(),
    rounds,
    starts: measurements.map(({ start }) => summarizeControllerStart(start)),
    changes: measurements.flatMap(({ changes }) => changes).map(summarizeChanges),
    failures,
  };
  printResult(result);
  saveOrExplain('control', result, {
    reasonToDiscard: signal.aborted ? 'the run was interrupted' : reasonToDiscard(options),
  });
  return failures.length > 0 ? 1 : 0;
}

function printResult(result: ControlResult): void {
  const { rounds, starts, changes, failures } = result;
  console.log(`${formatHeadline(result, `${rounds} changes per row`)}\n`);
  if (starts.length > 0) console.log(controllerStartTable(starts).join('\n'));
  if (changes.length > 0) console.log(['', ...controlChangeTable(changes)].join('\n'));
  if (failures.length > 0) console.log(['', ...failures.map((failure) => `failed: ${failure}`)].join('\n'));
}

function reasonToDiscard({ services, followers, rounds, scenarios }: ControlOptions): string | undefined {
  if (scenarios !== undefined) return 'a result needs all scenarios';
  if (services.join() !== CONTROL_DEFAULTS.services.join()) {
    return `a result needs one run for each of these numbers of Services: ${CONTROL_DEFAULTS.services.join(', ')}`;
  }
  if (followers < CONTROL_DEFAULTS.followers) return `a result needs ${CONTROL_DEFAULTS.followers} followers`;
  if (rounds < CONTROL_DEFAULTS.rounds) return `a result needs ${CONTROL_DEFAULTS.rounds} rounds`;
  return undefined;
}
