/** Inclusive on both ends. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** Whether one of the ranges holds the port. */
export function isInRanges(port: number, ranges: readonly PortRange[]): boolean {
  return ranges.some(({ from, to }) => from <= port && port <= to);
}

/** `80, 8000-8999` */
export function rangesText(ranges: readonly PortRange[]): readonly string[] {
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
}
