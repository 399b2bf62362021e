import { pairwiseRatios, type Quartiles, quartilesOf } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown-table.ts';

/** In µs, the nth of each in the same round. */
export type LatencyByFloodPath = {
  /** Nobody floods. */
  readonly quiet: readonly number[];
  /** The flood goes through a process of its own: what it takes from the machine. */
  readonly beside: readonly number[];
  /** The flood goes through the same worker. */
  readonly through: readonly number[];
};

export type FairnessRow = {
  readonly subject: string;
  readonly flood: string;
  readonly p50: LatencyByFloodPath;
  readonly p99: LatencyByFloodPath;
};

/** How many times its quiet 99th percentile a tenant's may be while another one asks for ten times its limit. */
const MAX_P99_RATIO = 2;

/** The one that the bar is about; without limits nobody promises anything. */
export const LIMITED_WEIR = 'weir, limited';

const HEADER = [
  ...['flood', 'subject', 'p99 µs, quiet', 'beside', 'through'],
  ...['beside / quiet', 'through / beside', 'through / quiet', 'bar'],
];

export function fairnessTable(rows: readonly FairnessRow[]): string[] {
  return markdownTable([HEADER, ...rows.map(fairnessCells)]);
}

function fairnessCells({ subject, flood, p99: { quiet, beside, through } }: FairnessRow): string[] {
  const medians = [quiet, beside, through].map((values) => quartilesOf(values).median.toFixed(0));
  const whole = quartilesOf(pairwiseRatios(through, quiet));
  const parts = [quartilesOf(pairwiseRatios(beside, quiet)), quartilesOf(pairwiseRatios(through, beside))].map(
    formatQuartiles,
  );
  const verdict =
    subject === LIMITED_WEIR ? `≤ ${MAX_P99_RATIO}, ${whole.median <= MAX_P99_RATIO ? 'met' : 'missed'}` : '';
  return [flood, subject, ...medians, ...parts, formatQuartiles(whole), verdict];
}

function formatQuartiles({ median, lowerQuartile, upperQuartile }: Quartiles): string {
  return `${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`;
}
