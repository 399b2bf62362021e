import { type Summary, summarize, summarizeTail, type TailSummary } from '../measure/statistics.ts';
import { formatTarget, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { PropagationSource } from './options.ts';

export type PropagationResult = RunMetadata & {
  readonly rows: readonly PropagationRow[];
};

/** The readings with one source and one number of Services. */
export type PropagationReadings = {
  readonly source: PropagationSource;
  readonly services: number;
  readonly changes: readonly PropagationReading[];
  /** Descriptions of a few wrong responses. */
  readonly wrongExamples: readonly string[];
  /** What the metric of the proxies contains about these changes: the sum of the counts of all proxies, and the mean time. */
  readonly observed: { readonly count: number; readonly meanMs: number };
};

/** The reading of one change. */
export type PropagationReading = {
  /** For each proxy, the milliseconds from the write to the first response from the new endpoint. Ascending. */
  readonly ms: readonly number[];
  readonly responses: number;
  readonly wrongResponses: number;
};

export type PropagationRow = Omit<PropagationReadings, 'changes'> & {
  /** Time until the slowest proxy used the new endpoint; `firstProxyMs`: until the fastest proxy used the new endpoint. */
  readonly lastProxyMs: TailSummary;
  readonly firstProxyMs: Summary;
  /** `responses` and `wrongResponses` are totals of all changes. */
  readonly responses: number;
  readonly wrongResponses: number;
};

export function summarizePropagation({ changes, ...readings }: PropagationReadings): PropagationRow {
  return {
    ...readings,
    lastProxyMs: summarizeTail(changes.map(({ ms }) => Math.max(...ms))),
    firstProxyMs: summarize(changes.map(({ ms }) => Math.min(...ms))),
    responses: changes.reduce((sum, { responses }) => sum + responses, 0),
    wrongResponses: changes.reduce((sum, { wrongResponses }) => sum + wrongResponses, 0),
  };
}

const HEADER = [
  ...['source', 'Services', 'changes', 'last proxy: median, ms', 'p99, ms', 'highest, ms', 'first proxy: median, ms'],
  ...['responses', 'wrong', 'metric: mean, ms', 'target'],
];

export function propagationTable(rows: readonly PropagationRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(propagationCells)]);
}

function propagationCells(row: PropagationRow): string[] {
  const { source, services, lastProxyMs, firstProxyMs, responses, wrongResponses, observed } = row;
  return [
    source,
    String(services),
    String(lastProxyMs.count),
    lastProxyMs.median.toFixed(1),
    lastProxyMs.p99.toFixed(1),
    lastProxyMs.highest.toFixed(1),
    firstProxyMs.median.toFixed(1),
    String(responses),
    String(wrongResponses),
    observed.meanMs.toFixed(1),
    formatTarget(lastProxyMs.p99, targetMs(row), 'ms'),
  ];
}

/** Returns the target of a row: the maximum of the 99th percentile of `lastProxyMs`. */
function targetMs({ services }: PropagationRow): number {
  return services <= 10 ? 30 : 60;
}
