import { startRedis } from '@weir/tools';
import { compileProxy } from '../processes/weir-proxy.ts';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, startRun } from '../report/run-metadata.ts';
import { saveResult } from '../report/save-result.ts';
import { measureStarts, WORKERS } from './measure-start.ts';
import { START_DEFAULTS, type StartOptions } from './options.ts';
import type { StartResult } from './start-result.ts';
import { proxyStartTable } from './start-result.ts';

const logProgress = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code: 1 when a row failed, though the others are told. */
export async function benchmarkStart(options: StartOptions, signal: AbortSignal): Promise<number> {
  const { services, here, rounds, profile } = options;
  const redis = await provideRedis();
  const program = await compileProxy();
  const endRun = startRun({ redis });
  await using server = await startRedis();
  const { rows, failures } = await measureStarts({
    redis: server.url,
    program,
    services,
    here,
    rounds,
    profile,
    signal,
    say: logProgress,
  });
  const result: StartResult = { ...endRun(), services, workers: WORKERS, rows };
  printResult(result);
  for (const failure of failures) console.log(`\nfailed: ${failure}`);
  const reason = failures.length > 0 || signal.aborted ? 'a result needs all rows' : reasonToDiscard(options);
  console.log(reason === undefined ? `\nwritten to ${saveResult('start', result)}` : `\nnot written: ${reason}`);
  return failures.length > 0 ? 1 : 0;
}

function printResult(result: StartResult): void {
  const { services, rows } = result;
  const starts = `${rows[0]?.starts.length ?? 0} starts each`;
  console.log(`${formatHeadline(result, `${services} Services`, `${WORKERS} workers`, starts)}\n`);
  if (rows.length > 0) console.log(proxyStartTable(rows).join('\n'));
  for (const { here, wanted } of rows) {
    if (here < wanted)
      console.log(`\n${here} instead of ${wanted} Services here: each needs ${WORKERS} descriptors (ulimit -n)`);
  }
}

/** Undefined: it is a result. */
function reasonToDiscard({ services, here, rounds, profile }: StartOptions): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (services !== START_DEFAULTS.services) return `a result needs ${START_DEFAULTS.services} Services`;
  if (here.join() !== START_DEFAULTS.here.join())
    return `a result needs ${START_DEFAULTS.here.join(', ')} of them here`;
  if (rounds < START_DEFAULTS.rounds) return `a result needs ${START_DEFAULTS.rounds} rounds`;
  return undefined;
}
