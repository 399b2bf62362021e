import { ratios, type Spread, spread } from '../measure/statistics.ts';
import { markdownTable } from '../report/markdown.ts';

/** In µs, the nth of each in the same round. */
export type Quantiles = {
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
  readonly p50: Quantiles;
  readonly p99: Quantiles;
};

/** How many times its quiet 99th percentile a tenant's may be while another one asks for ten times its limit. */
const bar = 2;

/** The one that the bar is about; without limits nobody promises anything. */
export const limitedWeir = 'weir, limited';

const head = [
  ...['flood', 'subject', 'p99 µs, quiet', 'beside', 'through'],
  ...['beside / quiet', 'through / beside', 'through / quiet', 'bar'],
];

export function fairnessTable(rows: readonly FairnessRow[]): string[] {
  return markdownTable([head, ...rows.map(cellsFor)]);
}

function cellsFor({ subject, flood, p99: { quiet, beside, through } }: FairnessRow): string[] {
  const medians = [quiet, beside, through].map((values) => spread(values).median.toFixed(0));
  const whole = spread(ratios(through, quiet));
  const parts = [spread(ratios(beside, quiet)), spread(ratios(through, beside))].map(inWords);
  const verdict = subject === limitedWeir ? `≤ ${bar}, ${whole.median <= bar ? 'met' : 'missed'}` : '';
  return [flood, subject, ...medians, ...parts, inWords(whole), verdict];
}

function inWords({ median, lowerQuartile, upperQuartile }: Spread): string {
  return `${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`;
}
