import { insideNamespace, providePrograms, startRedis } from '@weir/tools';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { PROFILED_RUN, saveOrExplain } from '../report/save-result.ts';
import { measureRun, type PropagationRun } from './measure-run.ts';
import { PROPAGATION_DEFAULTS, type PropagationOptions } from './options.ts';
import {
  type PropagationResult,
  type PropagationRow,
  propagationTable,
  summarizePropagation,
} from './propagation-result.ts';
import { NAMESPACE_ADDRESSES } from './topology.ts';

const API_SERVICES = 10;

/** Returns the exit code: 1 if a run failed or a response was wrong. The table still shows the runs that did not fail. */
export async function benchmarkPropagation(options: PropagationOptions, signal: AbortSignal): Promise<number> {
  const { redis, hasApi } = await providePropagationPrograms(options);
  const endRun = startRun({ redis });
  const rows: PropagationRow[] = [];
  const failures: string[] = [];
  for (const run of runsFor(options, hasApi)) {
    if (signal.aborted) break;
    await using server = await startRedis();
    const { changes, profileDirectory } = options;
    try {
      const readings = await measureRun(run, { redis: server.url, changes, profileDirectory, signal, logProgress });
      rows.push(summarizePropagation(readings));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      failures.push(`${run.source}, ${run.services} Services: ${reason}`);
    }
  }
  const result: PropagationResult = { ...endRun(), rows };
  printResult(result);
  for (const failure of failures) console.log(`\nfailed: ${failure}`);
  saveOrExplain('propagation', result, {
    reasonToDiscard: failures.length > 0 ? 'a run failed, and a result needs all runs' : reasonToDiscard(options, rows),
  });
  return failures.length > 0 || rows.some(({ wrongResponses }) => wrongResponses > 0) ? 1 : 0;
}

/**
 * Downloads the programs. Then enters the network namespace, if the sources include `api`. The downloads come first, because the namespace
 * has no route to the internet.
 */
async function providePropagationPrograms({
  sources,
  usesDefaultSources,
}: PropagationOptions): Promise<{ redis: string; hasApi: boolean }> {
  const redis = await provideRedis();
  if (!sources.includes('api')) return { redis, hasApi: false };
  const programs = await providePrograms(['ip', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl']);
  const missing = programs.find((program) => program.kind === 'missing');
  const reason =
    missing?.kind === 'missing'
      ? `${missing.name} is missing (${missing.reason}); to get it: ${missing.remedy}`
      : insideNamespace({ addresses: NAMESPACE_ADDRESSES }).skip;
  if (reason !== undefined && !usesDefaultSources) throw new Error(reason);
  if (reason !== undefined) logProgress(`leaving out the source "api": ${reason}`);
  return { redis, hasApi: reason === undefined };
}

function runsFor({ sources, services }: PropagationOptions, hasApi: boolean): PropagationRun[] {
  const sizes = sources.includes('memory') ? services : [];
  return [
    ...sizes.map((size): PropagationRun => ({ source: 'memory', services: size })),
    ...(hasApi ? [{ source: 'api', services: API_SERVICES } as const] : []),
  ];
}

function printResult(result: PropagationResult): void {
  const { rows } = result;
  console.log(`${formatHeadline(result)}\n`);
  if (rows.length > 0) console.log(propagationTable(rows).join('\n'));
  for (const { source, services, wrongExamples } of rows) {
    if (wrongExamples.length === 0) continue;
    console.log(`\nwrong responses (${source}, ${services} Services): ${wrongExamples.join('; ')}`);
  }
}

const MIN_CHANGES = 100;

function reasonToDiscard(
  { services, changes, profileDirectory }: PropagationOptions,
  rows: readonly PropagationRow[],
): string | undefined {
  if (profileDirectory !== undefined) return PROFILED_RUN;
  if (services.join() !== PROPAGATION_DEFAULTS.services.join()) {
    return `a result needs one run for each of these numbers of Services: ${PROPAGATION_DEFAULTS.services.join(', ')}`;
  }
  if (!rows.some(({ source }) => source === 'memory')) return 'a result needs a run with the source "memory"';
  if (changes < MIN_CHANGES) return `a result needs ${MIN_CHANGES} changes`;
  return undefined;
}
