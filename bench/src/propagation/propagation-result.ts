import { median, percentile } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { PropagationSource } from './options.ts';

export type PropagationResult = RunMetadata & {
  readonly rows: readonly PropagationRow[];
};

export type PropagationRow = {
  readonly source: PropagationSource;
  readonly services: number;
  readonly changes: readonly PropagationReading[];
  /** Of the first kinds of it, in words. */
  readonly wrong: readonly string[];
  /** What the proxies themselves observed: changes of all of them together, and their mean. */
  readonly observed: { readonly count: number; readonly meanMs: number };
};

/** Of one change: milliseconds from the write to the first right answer of each proxy, ascending. */
export type PropagationReading = { readonly ms: readonly number[]; readonly answers: number; readonly wrong: number };

const HEADER = [
  ...['source', 'Services', 'changes', 'last proxy: median, ms', 'p99, ms', 'worst, ms', 'first proxy: median, ms'],
  ...['answers', 'wrong', 'the metric says, mean ms', 'bar'],
];

export function propagationTable(rows: readonly PropagationRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(propagationCells)]);
}

/** The most that the 99th percentile of the last proxy may be. */
export function propagationTargetMs({ services }: Pick<PropagationRow, 'services'>): number {
  return services <= 10 ? 30 : 60;
}

export function wrongAnswerCount({ changes }: Pick<PropagationRow, 'changes'>): number {
  return changes.reduce((sum, { wrong }) => sum + wrong, 0);
}

function propagationCells(row: PropagationRow): string[] {
  const { source, services, changes, observed } = row;
  const last = changes.map(({ ms }) => Math.max(...ms));
  const first = changes.map(({ ms }) => Math.min(...ms));
  const p99 = percentile(last, 0.99);
  const bar = propagationTargetMs(row);
  return [
    source,
    String(services),
    String(changes.length),
    median(last).toFixed(1),
    p99.toFixed(1),
    Math.max(...last).toFixed(1),
    median(first).toFixed(1),
    String(changes.reduce((sum, { answers }) => sum + answers, 0)),
    String(wrongAnswerCount(row)),
    observed.meanMs.toFixed(1),
    `≤ ${bar} ms, ${p99 <= bar ? 'met' : 'missed'} (${(p99 / bar).toFixed(2)} ×)`,
  ];
}
