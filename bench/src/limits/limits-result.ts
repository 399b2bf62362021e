import { markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { LimitSubjectName } from './limit-subjects.ts';
import type { ConnectionCounts } from './load-process.ts';
import { LIMIT, PHASES, type PhaseName, phaseStart } from './phases.ts';

/** One phase of one subject. All figures are parts of the limit. */
export type LimitsRow = {
  readonly phase: PhaseName;
  readonly subject: LimitSubjectName;
  /** What clients offered. */
  readonly offered: number;
  /** The lowest and the highest number of admitted connections in any 10 s of the phase. */
  readonly lowest10s: number;
  readonly highest10s: number;
  /** The highest number in any second. */
  readonly highestSecond: number;
  /**
   * How many seconds after the start of the phase, or after the kill, a second began in which 95 % of the limit were admitted; null if
   * there was none.
   */
  readonly reachedAfterSeconds: number | null;
};

export type LimitsResult = RunMetadata & { readonly limit: number; readonly rows: readonly LimitsRow[] };

const TENTHS = 10;

export function limitsRows(subject: LimitSubjectName, { offered, admitted }: ConnectionCounts): readonly LimitsRow[] {
  return PHASES.map(({ name, seconds, killAt = 0 }) => {
    const from = phaseStart(name) * TENTHS;
    const until = from + seconds * TENTHS;
    const tenSeconds = windowSums(admitted.slice(from, until), 10 * TENTHS);
    const perSecond = windowSums(admitted.slice(from, until), TENTHS);
    const reached = perSecond.slice(killAt * TENTHS).findIndex((sum) => sum >= 0.95 * LIMIT);
    return {
      phase: name,
      subject,
      offered: sum(offered.slice(from, until)) / (seconds * LIMIT),
      lowest10s: Math.min(...tenSeconds) / (10 * LIMIT),
      highest10s: Math.max(...tenSeconds) / (10 * LIMIT),
      highestSecond: Math.max(...perSecond) / LIMIT,
      reachedAfterSeconds: reached < 0 ? null : reached / TENTHS,
    };
  });
}

export function limitsTable(rows: readonly LimitsRow[]): readonly string[] {
  return markdownTable([
    ['phase', 'subject', 'offered', 'lowest 10 s', 'highest 10 s', 'highest second', '95 % of the limit after'],
    ...PHASES.flatMap(({ name }) => rows.filter(({ phase }) => phase === name)).map((row) => [
      row.phase,
      row.subject,
      ...[row.offered, row.lowest10s, row.highest10s, row.highestSecond].map(percent),
      row.reachedAfterSeconds === null ? 'never' : `${row.reachedAfterSeconds.toFixed(1)} s`,
    ]),
  ]);
}

/** Returns the sums of all runs of `length` neighbouring numbers. */
export function windowSums(numbers: readonly number[], length: number): readonly number[] {
  const sums: number[] = [];
  let running = 0;
  for (const [index, number] of numbers.entries()) {
    running += number - (numbers[index - length] ?? 0);
    if (index >= length - 1) sums.push(running);
  }
  return sums;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
