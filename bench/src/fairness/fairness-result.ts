import { pairwiseRatios, type Summary, summarize } from '../measure/statistics.ts';
import { formatMedian, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';

export type FairnessResult = RunMetadata & {
  readonly rounds: number;
  readonly seconds: number;
  readonly rows: readonly FairnessRow[];
  /** Subjects that did not take part, with the reason. */
  readonly leftOut: readonly string[];
};

/** The path of the flood while the latency of another tenant is measured. */
export const FLOOD_PATHS = ['idle', 'separateProcess', 'sameProcess'] as const;

/**
 * `idle`: no flood. `separateProcess`: the flood passes through a second process of the same program, which shows what the flood takes
 * from the machine. `sameProcess`: the flood passes through the worker of the measured tenant.
 */
export type FloodPath = (typeof FLOOD_PATHS)[number];

/** Percentiles in µs of one round. */
export type LatencyReading = { readonly p50: number; readonly p99: number };

/** What was measured with one flood; the nth readings of all paths are of the same round. */
export type FairnessReadings = {
  readonly subject: string;
  readonly flood: string;
  readonly readings: Readonly<Record<FloodPath, readonly LatencyReading[]>>;
};

/** What a result keeps of one flood; latencies are in µs. */
export type FairnessRow = {
  readonly subject: string;
  readonly flood: string;
  readonly p50: Readonly<Record<FloodPath, Summary>>;
  readonly p99: Readonly<Record<FloodPath, Summary>>;
  readonly p99Ratios: {
    readonly separateProcessToIdle: Summary;
    readonly sameProcessToSeparateProcess: Summary;
    readonly sameProcessToIdle: Summary;
  };
};

export function summarizeFairness({ subject, flood, readings }: FairnessReadings): FairnessRow {
  const values = (path: FloodPath, percentile: keyof LatencyReading): number[] =>
    readings[path].map((reading) => reading[percentile]);
  const summaries = (percentile: keyof LatencyReading): FairnessRow['p99'] => ({
    idle: summarize(values('idle', percentile)),
    separateProcess: summarize(values('separateProcess', percentile)),
    sameProcess: summarize(values('sameProcess', percentile)),
  });
  const p99Ratio = (path: FloodPath, reference: FloodPath): Summary =>
    summarize(pairwiseRatios(values(path, 'p99'), values(reference, 'p99')));
  return {
    subject,
    flood,
    p50: summaries('p50'),
    p99: summaries('p99'),
    p99Ratios: {
      separateProcessToIdle: p99Ratio('separateProcess', 'idle'),
      sameProcessToSeparateProcess: p99Ratio('sameProcess', 'separateProcess'),
      sameProcessToIdle: p99Ratio('sameProcess', 'idle'),
    },
  };
}

/** Maximum of a tenant's 99th percentile during a flood, as a multiple of its 99th percentile without a flood. */
const MAX_P99_RATIO = 2;

/** The only subject with a target: without limits, no proxy bounds what one tenant takes from another. */
export const LIMITED_WEIR = 'weir, limited';

const HEADER = [
  ...['flood', 'subject', 'p99 µs: idle', 'separate process', 'same process'],
  ...['separate / idle', 'same / separate', 'same / idle', 'target'],
];

export function fairnessTable(rows: readonly FairnessRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(fairnessCells)]);
}

function fairnessCells({ subject, flood, p99, p99Ratios }: FairnessRow): string[] {
  const { separateProcessToIdle, sameProcessToSeparateProcess, sameProcessToIdle } = p99Ratios;
  const isMet = sameProcessToIdle.median <= MAX_P99_RATIO;
  return [
    flood,
    subject,
    ...FLOOD_PATHS.map((path) => p99[path].median.toFixed(0)),
    formatMedian(separateProcessToIdle, 2),
    formatMedian(sameProcessToSeparateProcess, 2),
    formatMedian(sameProcessToIdle, 2),
    subject === LIMITED_WEIR ? `≤ ${MAX_P99_RATIO}, ${isMet ? 'met' : 'missed'}` : '',
  ];
}
