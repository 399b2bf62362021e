import { startRedis } from '@weir/testkit';
import { provideRedis } from '../provide-redis.ts';
import { beginRun, headline } from '../report/run-facts.ts';
import { writeResult } from '../report/write-result.ts';
import { type ControlOptions, controlDefaults } from './arguments.ts';
import type { ControlResult } from './control-result.ts';
import { changeTable, startTable } from './control-table.ts';
import { type Measured, measure } from './measure.ts';
import { controlScenarios } from './scenario-name.ts';

const starts = 3;
const say = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code: 1 when something failed, though what was measured until then is told, and kept. */
export async function benchmarkControl(options: ControlOptions, signal: AbortSignal): Promise<number> {
  const { services, followers, rounds, only = controlScenarios } = options;
  const redis = await provideRedis();
  const endRun = beginRun({ redis });
  const scenarios = only.filter((name) => name !== 'start');
  const measured: Measured[] = [];
  const failures: string[] = [];
  for (const count of services) {
    // as in production what is acknowledged goes to the disk; each size has a server of its own
    await using server = await startRedis();
    const size = { url: server.url, services: count, followers, rounds, scenarios };
    try {
      const one = await measure({ ...size, starts: only.includes('start') ? starts : 1, signal, say });
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
  print(result);
  const reason = signal.aborted ? 'it was interrupted' : reasonNotToKeep(options);
  console.log(reason === undefined ? `\nwritten to ${writeResult('control', result)}` : `\nnot written: ${reason}`);
  return failures.length > 0 ? 1 : 0;
}

function print(result: ControlResult): void {
  const { rounds, starts, changes, failures } = result;
  console.log(`${headline(result, `${rounds} changes each`)}\n`);
  if (starts.length > 0)
    console.log([...startTable(starts), ...(changes.length > 0 ? ['', ...changeTable(changes)] : [])].join('\n'));
  if (failures.length > 0) console.log(['', ...failures.map((failure) => `failed: ${failure}`)].join('\n'));
}

/** Undefined: it is a result. */
function reasonNotToKeep({ services, followers, rounds, only }: ControlOptions): string | undefined {
  if (only !== undefined) return 'a result needs all scenarios';
  if (services.join() !== controlDefaults.services.join())
    return `a result needs ${controlDefaults.services.join(', ')} Services`;
  if (followers < controlDefaults.followers) return `a result needs ${controlDefaults.followers} followers`;
  if (rounds < controlDefaults.rounds) return `a result needs ${controlDefaults.rounds} rounds`;
  return undefined;
}
