import { type Summary, summarize } from '../measure/statistics.ts';
import { formatMedian, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';
import type { HostileScenarioName } from './options.ts';

export type HostileResult = RunMetadata & {
  readonly rounds: number;
  readonly seconds: number;
  readonly rows: readonly HostileRow[];
};

/** Percentiles of the other tenant's latencies in one measurement, in ms. */
export type LatencyMs = { readonly p50: number; readonly p99: number };

/** One round of a scenario. */
export type HostileReading = {
  /** Without the attack, immediately before the attack. */
  readonly quiet: LatencyMs;
  readonly attacked: LatencyMs;
  /** CPU time that Weir used during the attack, in seconds. */
  readonly cpuSeconds: number;
  /** The highest resident memory of Weir during the attack minus the resident memory before the attack, in MiB. */
  readonly memoryMiB: number;
  /** How many workers ended. */
  readonly workerEnds: number;
  /** How much of the attack the proxy has accepted. */
  readonly accepted: string;
  /** What else the scenario measures, in the same order in each round. */
  readonly bounded: readonly BoundedValue[];
};

/** A measured value with its target: a highest or a lowest value. */
export type BoundedValue = {
  readonly value: number;
  /** What is wrong if the value misses its target, such as `more than 256 MiB`. */
  readonly miss: string;
} & ({ readonly max: number } | { readonly min: number });

/** How far the other tenant's 99th percentile may rise during the attack: in ms, or as a ratio to the percentile before the attack. */
export type P99Target = { readonly maxP99RiseMs: number } | { readonly maxP99Ratio: number };

/** The summary of a scenario, as stored in a result. Latencies are in ms. */
export type HostileRow = P99Target & {
  readonly scenario: HostileScenarioName;
  readonly quiet: Readonly<Record<keyof LatencyMs, Summary>>;
  readonly attacked: Readonly<Record<keyof LatencyMs, Summary>>;
  /** The rise of the 99th percentile in each round. */
  readonly p99Rise: Summary;
  /** The ratio of the 99th percentiles in each round. */
  readonly p99Ratio: Summary;
  readonly cpuSeconds: Summary;
  readonly memoryMiB: Summary;
  /** In all rounds together. */
  readonly workerEnds: number;
  /** In the last round. */
  readonly accepted: string;
  /** The targets, besides the target of the latency, that the medians of the rounds miss. */
  readonly missedTargets: readonly string[];
};

export function summarizeHostile(
  scenario: HostileScenarioName,
  { readings, target }: { readonly readings: readonly HostileReading[]; readonly target: P99Target },
): HostileRow {
  const of = (value: (reading: HostileReading) => number): Summary => summarize(readings.map(value));
  return {
    scenario,
    quiet: { p50: of(({ quiet }) => quiet.p50), p99: of(({ quiet }) => quiet.p99) },
    attacked: { p50: of(({ attacked }) => attacked.p50), p99: of(({ attacked }) => attacked.p99) },
    p99Rise: of(({ quiet, attacked }) => attacked.p99 - quiet.p99),
    p99Ratio: of(({ quiet, attacked }) => attacked.p99 / quiet.p99),
    ...target,
    cpuSeconds: of(({ cpuSeconds }) => cpuSeconds),
    memoryMiB: of(({ memoryMiB }) => memoryMiB),
    workerEnds: readings.reduce((sum, { workerEnds }) => sum + workerEnds, 0),
    accepted: readings.at(-1)?.accepted ?? '',
    missedTargets: (readings[0]?.bounded ?? []).flatMap((target, index) => {
      const { median } = of(({ bounded }) => bounded[index]?.value ?? Number.NaN);
      const isMet = 'max' in target ? median <= target.max : median >= target.min;
      return isMet ? [] : [target.miss];
    }),
  };
}

/** Whether the other tenant was disturbed no more than the target allows. */
export function meetsTarget(row: HostileRow): boolean {
  const { p99Rise, p99Ratio, workerEnds, missedTargets } = row;
  const isFast = 'maxP99Ratio' in row ? p99Ratio.median <= row.maxP99Ratio : p99Rise.median <= row.maxP99RiseMs;
  return isFast && workerEnds === 0 && missedTargets.length === 0;
}

const HEADER = [
  ...['scenario', 'p50 ms: quiet', 'attack', 'p99 ms: quiet', 'attack', 'rise of p99, ms'],
  ...['CPU s', 'memory MiB', 'worker ends', 'target'],
];

export function hostileTable(rows: readonly HostileRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(hostileCells)]);
}

function hostileCells(row: HostileRow): string[] {
  const { scenario, quiet, attacked, p99Rise, cpuSeconds, memoryMiB, workerEnds } = row;
  const target = 'maxP99Ratio' in row ? `≤ ${row.maxP99Ratio} × p99` : `≤ ${row.maxP99RiseMs} ms`;
  return [
    scenario,
    ...[quiet.p50, attacked.p50, quiet.p99, attacked.p99].map(({ median }) => median.toFixed(1)),
    formatMedian(p99Rise, 1),
    cpuSeconds.median.toFixed(1),
    memoryMiB.median.toFixed(0),
    String(workerEnds),
    `${target}, no worker ends: ${meetsTarget(row) ? 'met' : ['missed', ...row.missedTargets].join(', ')}`,
  ];
}
