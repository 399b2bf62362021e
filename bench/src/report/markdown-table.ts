/** A Markdown table that is also readable as it stands; the first row is its head. */
export function markdownTable(rows: readonly (readonly string[])[]): string[] {
  const [head = [], ...others] = rows;
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...others.map(line)];
}
