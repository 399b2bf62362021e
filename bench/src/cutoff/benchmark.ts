import { insideNamespace, providePrograms } from '@weir/tools';
import { compileWeir } from '../processes/compile.ts';
import { formatHeadline, logProgress, startRun } from '../report/run-metadata.ts';
import { saveOrExplain } from '../report/save-result.ts';
import {
  type CutoffReading,
  type CutoffResult,
  type CutoffRow,
  cutoffTable,
  formatRestart,
  holdsAcrossRestart,
  isCutOff,
  kindTable,
  type RestartReading,
  summarizeCutoff,
} from './cutoff-result.ts';
import { measureCutoff, measureRestart, startCutoffBench } from './measure-cutoff.ts';
import { CUTOFF_DEFAULTS, CUTOFF_SCENARIO_NAMES, type CutoffOptions } from './options.ts';
import { TIMED_SCENARIOS } from './scenarios.ts';
import { benchNodes, namespaceAddresses } from './topology.ts';

/** Returns the exit code: 1 if a connection did not end in time, or if another tenant lost an operation. */
export async function benchmarkCutoff(options: CutoffOptions, signal: AbortSignal): Promise<number> {
  const { proxies, connections, rounds, scenarios = CUTOFF_SCENARIO_NAMES } = options;
  const nodes = benchNodes(proxies);
  const versions = await prepare(namespaceAddresses(nodes));
  const endRun = startRun(versions);
  const rows: CutoffRow[] = [];
  let restart: RestartReading | undefined;
  {
    await using bench = await startCutoffBench(nodes);
    logProgress(`${proxies} proxies serve`);
    for (const name of scenarios) {
      if (name === 'restart') restart = await measureRestart(bench);
      else {
        const onReading = (reading: CutoffReading, round: number): void =>
          logProgress(`${name}: round ${round} of ${rounds}: ${formatReading(summarizeCutoff(name, [reading]))}`);
        const measured = { connections, rounds, signal, onReading };
        rows.push(summarizeCutoff(name, await measureCutoff(bench, TIMED_SCENARIOS[name], measured)));
      }
    }
  }
  const result: CutoffResult = { ...endRun(), proxies, connections, rounds, rows, ...(restart && { restart }) };
  printResult(result);
  saveOrExplain('cutoff', result, { reasonToDiscard: reasonToDiscard(options) });
  return rows.every(isCutOff) && (restart === undefined || holdsAcrossRestart(restart)) ? 0 : 1;
}

/** Compiles Weir, downloads the programs, and then enters the network namespace, which has no route to the internet. */
async function prepare(addresses: readonly string[]): Promise<Readonly<Record<string, string>>> {
  await compileWeir();
  const programs = await providePrograms([
    ...(['ip', 'redis-server', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'] as const),
  ]);
  const versions: Record<string, string> = {};
  for (const found of programs) {
    if (found.kind === 'missing')
      throw new Error(`${found.name} is missing (${found.reason}); to get it: ${found.remedy}`);
    if (found.name === 'redis-server' || found.name === 'kube-apiserver') versions[found.name] = found.version;
  }
  const { skip } = insideNamespace({ addresses });
  if (skip !== undefined) throw new Error(skip);
  return versions;
}

function formatReading({ lastByteMs, endMs, commandMs, open, others }: CutoffRow): string {
  const times = `last byte p99 ${lastByteMs.p99.toFixed(0)} ms, end p99 ${endMs.p99.toFixed(0)} ms, command ${commandMs.median.toFixed(0)} ms`;
  return `${times}, ${open} not ended, others lost ${others.lost}${others.firstLoss === null ? '' : ` (${others.firstLoss})`}`;
}

function printResult(result: CutoffResult): void {
  const { proxies, rounds, rows, restart } = result;
  console.log(`${formatHeadline(result, `${proxies} proxies, ${rounds} rounds`)}\n`);
  if (rows.length > 0) console.log([...cutoffTable(rows), '', ...kindTable(rows)].join('\n'));
  if (restart !== undefined) console.log(`\n${formatRestart(restart)}`);
}

function reasonToDiscard({ proxies, connections, rounds, scenarios }: CutoffOptions): string | undefined {
  if (scenarios !== undefined) return 'a result needs all scenarios';
  if (proxies < CUTOFF_DEFAULTS.proxies || connections < CUTOFF_DEFAULTS.connections) {
    return `a result needs ${CUTOFF_DEFAULTS.proxies} proxies and ${CUTOFF_DEFAULTS.connections} connections`;
  }
  return rounds < CUTOFF_DEFAULTS.rounds ? `a result needs ${CUTOFF_DEFAULTS.rounds} rounds or more` : undefined;
}
