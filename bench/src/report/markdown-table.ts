import type { Summary } from '../measure/statistics.ts';

/** Formats rows as a Markdown table with padded columns; the first row is the header. */
export function markdownTable(rows: readonly (readonly string[])[]): string[] {
  const [header = [], ...body] = rows;
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(header), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...body.map(line)];
}

/** Returns a target and whether the value meets the target, for example `≤ 30 ms, met (0.59 ×)`. */
export function formatTarget(value: number, target: number, unit: string): string {
  return `≤ ${target} ${unit}, ${value <= target ? 'met' : 'missed'} (${(value / target).toFixed(2)} ×)`;
}

/** Returns the quartiles, for example `1.10–1.23`. */
export function formatQuartiles({ lowerQuartile, upperQuartile }: Summary, digits: number): string {
  return `${lowerQuartile.toFixed(digits)}–${upperQuartile.toFixed(digits)}`;
}

/** Returns median and quartiles, for example `1.17 (1.10–1.23)`. */
export function formatMedian(summary: Summary, digits: number): string {
  return `${summary.median.toFixed(digits)} (${formatQuartiles(summary, digits)})`;
}

/** Returns median, lowest and highest value without decimals, for example `2578 (2240–2657)`. */
export function formatRange({ median, lowest, highest }: Summary): string {
  return `${median.toFixed(0)} (${lowest.toFixed(0)}–${highest.toFixed(0)})`;
}
