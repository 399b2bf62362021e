import { insideNamespace, providePrograms, startRedis } from '@weir/tools';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, startRun } from '../report/run-metadata.ts';
import { saveResult } from '../report/save-result.ts';
import { measureRun, type PropagationRun } from './measure-run.ts';
import { PROPAGATION_DEFAULTS, type PropagationOptions } from './options.ts';
import type { PropagationResult, PropagationRow } from './propagation-result.ts';
import { propagationTable, wrongAnswerCount } from './propagation-result.ts';
import { NAMESPACE_ADDRESSES } from './topology.ts';

/** Of a result that counts. */
const MIN_CHANGES = 100;
const API_SERVICES = 10;
const logProgress = (text: string): void => console.error(`bench: ${text}`);

/** Returns the exit code: 1 when a run failed or an answer was wrong, though what was measured is told. */
export async function benchmarkPropagation(options: PropagationOptions, signal: AbortSignal): Promise<number> {
  const { redis, hasApi } = await providePropagationPrograms(options);
  const endRun = startRun({ redis });
  const rows: PropagationRow[] = [];
  const failures: string[] = [];
  const runs: PropagationRun[] = [
    ...(options.sources.includes('memory') ? options.services : []).map(
      (services): PropagationRun => ({ source: 'memory', services }),
    ),
    ...(hasApi ? [{ source: 'api', services: API_SERVICES } as const] : []),
  ];
  for (const run of runs) {
    if (signal.aborted) break;
    await using server = await startRedis();
    const { changes, profile } = options;
    try {
      rows.push(await measureRun(run, { redis: server.url, changes, profile, signal, say: logProgress }));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      failures.push(`${run.source}, ${run.services} Services: ${why}`);
    }
  }
  const result: PropagationResult = { ...endRun(), rows };
  printResult(result);
  for (const failure of failures) console.log(`\nfailed: ${failure}`);
  const reason = failures.length > 0 ? 'a result needs all runs' : reasonToDiscard(options, rows);
  console.log(reason === undefined ? `\nwritten to ${saveResult('propagation', result)}` : `\nnot written: ${reason}`);
  return failures.length > 0 || rows.some((row) => wrongAnswerCount(row) > 0) ? 1 : 0;
}

/** Fetched before the namespace is entered, in which there is nobody to fetch from. */
async function providePropagationPrograms({
  sources,
  isByDefault,
}: PropagationOptions): Promise<{ redis: string; hasApi: boolean }> {
  const redis = await provideRedis();
  if (!sources.includes('api')) return { redis, hasApi: false };
  const programs = await providePrograms(['ip', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl']);
  const missing = programs.find((each) => each.kind === 'missing');
  const why =
    missing?.kind === 'missing'
      ? `${missing.name} is missing (${missing.reason}); to get it: ${missing.remedy}`
      : insideNamespace({ addresses: NAMESPACE_ADDRESSES }).skip;
  if (why !== undefined && !isByDefault) throw new Error(why);
  if (why !== undefined) logProgress(`without an API server: ${why}`);
  return { redis, hasApi: why === undefined };
}

function printResult(result: PropagationResult): void {
  const { rows } = result;
  console.log(`${formatHeadline(result)}\n`);
  if (rows.length > 0) console.log(propagationTable(rows).join('\n'));
  for (const { source: from, services, wrong } of rows) {
    if (wrong.length > 0) console.log(`\nwrong answers (${from}, ${services} Services): ${wrong.join('; ')}`);
  }
}

/** Undefined: it is a result. */
function reasonToDiscard(
  { services, changes, profile }: PropagationOptions,
  rows: readonly PropagationRow[],
): string | undefined {
  if (profile !== undefined) return 'a process that is profiled is slower';
  if (services.join() !== PROPAGATION_DEFAULTS.services.join())
    return `a result needs ${PROPAGATION_DEFAULTS.services.join(', ')} Services`;
  if (!rows.some(({ source }) => source === 'memory')) return 'a result needs the source memory';
  if (changes < MIN_CHANGES) return `a result needs ${MIN_CHANGES} changes`;
  return undefined;
}
