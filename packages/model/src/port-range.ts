/** A range of ports that includes `from` and `to`. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** The format that `parsePortRange` accepts, for error messages. */
export const PORT_RANGE_FORMAT = 'a port from 1 to 65535, or a range such as 8000-8999';

const RANGE = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/;

/** Parses a port or a range, such as `443` or `8000-8999`. Returns undefined for any other text. */
export function parsePortRange(text: string): PortRange | undefined {
  const [, first, last = first] = RANGE.exec(text) ?? [];
  if (first === undefined) return undefined;
  const range = { from: Number(first), to: Number(last) };
  return range.from <= range.to && range.to <= 65_535 ? Object.freeze(range) : undefined;
}

/** Whether one of the ranges contains the port. */
export function isPortInRanges(port: number, ranges: readonly PortRange[]): boolean {
  return ranges.some(({ from, to }) => from <= port && port <= to);
}

/** Returns each range as text, such as `80` or `8000-8999`. */
export function formatPortRanges(ranges: readonly PortRange[]): readonly string[] {
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
}
