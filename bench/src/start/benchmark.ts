import { startRedis } from '@weir/testkit';
import { provideRedis } from '../provide-redis.ts';
import { beginRun, headline } from '../report/run-facts.ts';
import { writeResult } from '../report/write-result.ts';
import { type StartOptions, startDefaults } from './arguments.ts';
import { buildProxy } from './built-proxy.ts';
import { measureShares } from './measure-shares.ts';
import { workers } from './measure-start.ts';
import type { StartResult } from './start-result.ts';
import { startTable } from './start-table.ts';

const say = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code: 1 when a row failed, though the others are told. */
export async function benchmarkStart(options: StartOptions, signal: AbortSignal): Promise<number> {
  const { services, here, rounds, profile } = options;
  const redis = await provideRedis();
  const program = await buildProxy();
  const endRun = beginRun({ redis });
  await using server = await startRedis();
  const { rows, failures } = await measureShares({
    redis: server.url,
    program,
    services,
    here,
    rounds,
    profile,
    signal,
    say,
  });
  const result: StartResult = { ...endRun(), services, workers, rows };
  print(result);
  for (const failure of failures) console.log(`\nfailed: ${failure}`);
  const reason = failures.length > 0 || signal.aborted ? 'a result needs all rows' : reasonNotToKeep(options);
  console.log(reason === undefined ? `\nwritten to ${writeResult('start', result)}` : `\nnot written: ${reason}`);
  return failures.length > 0 ? 1 : 0;
}

function print(result: StartResult): void {
  const { services, rows } = result;
  const starts = `${rows[0]?.starts.length ?? 0} starts each`;
  console.log(`${headline(result, `${services} Services`, `${workers} workers`, starts)}\n`);
  if (rows.length > 0) console.log(startTable(rows).join('\n'));
  for (const { here, wanted } of rows) {
    if (here < wanted)
      console.log(`\n${here} instead of ${wanted} Services here: each needs ${workers} descriptors (ulimit -n)`);
  }
}

/** Undefined: it is a result. */
function reasonNotToKeep({ services, here, rounds, profile }: StartOptions): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (services !== startDefaults.services) return `a result needs ${startDefaults.services} Services`;
  if (here.join() !== startDefaults.here.join()) return `a result needs ${startDefaults.here.join(', ')} of them here`;
  if (rounds < startDefaults.rounds) return `a result needs ${startDefaults.rounds} rounds`;
  return undefined;
}
