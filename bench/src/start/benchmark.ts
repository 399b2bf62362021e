import { startRedis } from '@weir/tools';
import { compileProxy } from '../processes/weir-proxy.ts';
import { provideRedis } from '../provide-programs.ts';
import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { PROFILED_RUN, saveOrExplain } from '../report/save-result.ts';
import { measureStarts, WORKERS } from './measure-start.ts';
import { START_DEFAULTS, type StartOptions } from './options.ts';
import { proxyStartTable, type StartResult, summarizeProxyStart } from './start-result.ts';

/** Returns the exit code: 1 if the proxies of a row failed to start. The table still shows the other rows. */
export async function benchmarkStart(options: StartOptions, signal: AbortSignal): Promise<number> {
  const { services, servicesOnNode, rounds, profileDirectory } = options;
  const redis = await provideRedis();
  const program = await compileProxy();
  const endRun = startRun({ redis });
  await using server = await startRedis();
  const { rows, failures } = await measureStarts({
    redis: server.url,
    program,
    services,
    servicesOnNode,
    rounds,
    profileDirectory,
    signal,
    logProgress,
  });
  const result: StartResult = { ...endRun(), services, workers: WORKERS, rows: rows.map(summarizeProxyStart) };
  printResult(result);
  for (const failure of failures) console.log(`\nfailed: ${failure}`);
  saveOrExplain('start', result, {
    reasonToDiscard:
      failures.length > 0 || signal.aborted
        ? 'a start failed or was interrupted, and a result needs all rows'
        : reasonToDiscard(options),
  });
  return failures.length > 0 ? 1 : 0;
}

function printResult(result: StartResult): void {
  const { services, workers, rows } = result;
  const starts = `${rows[0]?.servingMs.count ?? 0} starts per row`;
  console.log(`${formatHeadline(result, `${services} Services`, `${workers} workers`, starts)}\n`);
  if (rows.length > 0) console.log(proxyStartTable(rows).join('\n'));
  for (const { servicesOnNode, requestedServices } of rows) {
    if (servicesOnNode >= requestedServices) continue;
    console.log(
      `\nmeasured ${servicesOnNode} instead of ${requestedServices} Services on the node, because each Service needs ${workers} descriptors; raise ulimit -n`,
    );
  }
}

function reasonToDiscard({ services, servicesOnNode, rounds, profileDirectory }: StartOptions): string | undefined {
  if (profileDirectory !== undefined) return PROFILED_RUN;
  if (services !== START_DEFAULTS.services) return `a result needs a fleet of ${START_DEFAULTS.services} Services`;
  if (servicesOnNode.join() !== START_DEFAULTS.servicesOnNode.join()) {
    return `a result needs one run for each of these numbers of Services on the node: ${START_DEFAULTS.servicesOnNode.join(', ')}`;
  }
  if (rounds < START_DEFAULTS.rounds) return `a result needs ${START_DEFAULTS.rounds} rounds`;
  return undefined;
}
