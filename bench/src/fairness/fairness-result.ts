import { pairwiseRatios, type Summary, summarize } from '../measure/statistics.ts';
import { formatMedian, markdownTable } from '../report/markdown-table.ts';
import type { RunMetadata } from '../report/run-metadata.ts';

export type FairnessResult = RunMetadata & {
  readonly rounds: number;
  readonly seconds: number;
  readonly rows: readonly FairnessRow[];
  /** One text for each subject that was not measured, with the reason. */
  readonly leftOut: readonly string[];
};

/** The paths that the flood takes while the latency of the measured tenant is read. */
export const FLOOD_PATHS = ['idle', 'separateProcess', 'sameProcess'] as const;

/**
 * `idle`: no flood. `separateProcess`: the flood passes through a second process of the same program, so that only the machine is
 * shared with the measured tenant. `sameProcess`: the flood passes through the worker of the measured tenant.
 */
export type FloodPath = (typeof FLOOD_PATHS)[number];

/** Percentiles of the latencies of one round, in µs. */
export type LatencyReading = { readonly p50: number; readonly p99: number };

/** The readings of one subject with one kind of flood. The readings with the same index belong to the same round. */
export type FairnessReadings = {
  readonly subject: string;
  readonly flood: string;
  readonly readings: Readonly<Record<FloodPath, readonly LatencyReading[]>>;
};

/** The summary of one subject with one kind of flood, as stored in a result. Latencies are in µs. */
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

/** Target: the 99th percentile of a tenant's latency during a flood is at most this multiple of the percentile without a flood. */
const MAX_P99_RATIO = 2;

/** Weir with limits, the only subject with a target. Without limits, a proxy does not bound how much one tenant slows another down. */
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
