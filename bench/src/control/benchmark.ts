import { startRedis } from '@weir/tools';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, startRun } from '../report/run-metadata.ts';
import { saveResult } from '../report/save-result.ts';
import type { ControlResult } from './control-result.ts';
import { controlChangeTable, controllerStartTable } from './control-result.ts';
import { type ClusterMeasurement, measureCluster } from './measure-cluster.ts';
import { CONTROL_DEFAULTS, CONTROL_SCENARIOS, type ControlOptions } from './options.ts';

const STARTS_PER_SIZE = 3;
const logProgress = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code: 1 when something failed, though what was measured until then is told, and kept. */
export async function benchmarkControl(options: ControlOptions, signal: AbortSignal): Promise<number> {
  const { services, followers, rounds, only = CONTROL_SCENARIOS } = options;
  const redis = await provideRedis();
  const endRun = startRun({ redis });
  const scenarios = only.filter((name) => name !== 'start');
  const measured: ClusterMeasurement[] = [];
  const failures: string[] = [];
  for (const count of services) {
    // as in production what is acknowledged goes to the disk; each size has a server of its own
    await using server = await startRedis();
    const size = { url: server.url, services: count, followers, rounds, scenarios };
    try {
      const one = await measureCluster({
        ...size,
        starts: only.includes('start') ? STARTS_PER_SIZE : 1,
        signal,
        say: logProgress,
      });
      measured.push(one);
      if (one.failure !== undefined) failures.push(one.failure);
    } catch (error) {
      failures.push(`${count} Services: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (signal.aborted) break;
  }
  const result: ControlResult = {
    ...endRun(),
    rounds,
    starts: measured.map(({ start }) => start),
    changes: measured.flatMap(({ changes }) => changes),
    failures,
  };
  printResult(result);
  const reason = signal.aborted ? 'it was interrupted' : reasonToDiscard(options);
  console.log(reason === undefined ? `\nwritten to ${saveResult('control', result)}` : `\nnot written: ${reason}`);
  return failures.length > 0 ? 1 : 0;
}

function printResult(result: ControlResult): void {
  const { rounds, starts, changes, failures } = result;
  console.log(`${formatHeadline(result, `${rounds} changes each`)}\n`);
  if (starts.length > 0)
    console.log(
      [...controllerStartTable(starts), ...(changes.length > 0 ? ['', ...controlChangeTable(changes)] : [])].join('\n'),
    );
  if (failures.length > 0) console.log(['', ...failures.map((failure) => `failed: ${failure}`)].join('\n'));
}

/** Undefined: it is a result. */
function reasonToDiscard({ services, followers, rounds, only }: ControlOptions): string | undefined {
  if (only !== undefined) return 'a result needs all scenarios';
  if (services.join() !== CONTROL_DEFAULTS.services.join())
    return `a result needs ${CONTROL_DEFAULTS.services.join(', ')} Services`;
  if (followers < CONTROL_DEFAULTS.followers) return `a result needs ${CONTROL_DEFAULTS.followers} followers`;
  if (rounds < CONTROL_DEFAULTS.rounds) return `a result needs ${CONTROL_DEFAULTS.rounds} rounds`;
  return undefined;
}
