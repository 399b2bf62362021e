import { median, percentile } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown.ts';
import type { PropagationRow } from './propagation-result.ts';

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
