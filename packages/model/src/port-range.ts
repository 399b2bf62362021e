/** Inclusive on both ends. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** What `parsePortRange` reads, for whoever wrote something else. */
export const PORT_RANGE_FORMAT = 'a port from 1 to 65535, or a range such as 8000-8999';

const RANGE = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/;

/** `443`, `8000-8999`; undefined: it is none. */
export function parsePortRange(text: string): PortRange | undefined {
  const [, first, last = first] = RANGE.exec(text) ?? [];
  if (first === undefined) return undefined;
  const range = { from: Number(first), to: Number(last) };
  return range.from <= range.to && range.to <= 65_535 ? Object.freeze(range) : undefined;
}

/** Whether one of the ranges holds the port. */
export function isPortInRanges(port: number, ranges: readonly PortRange[]): boolean {
  return ranges.some(({ from, to }) => from <= port && port <= to);
}

/** `80, 8000-8999` */
export function formatPortRanges(ranges: readonly PortRange[]): readonly string[] {
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
}
