import { stripVTControlCharacters } from 'node:util';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly align?: 'right';
}

const GAP = '   ';

/** Columns as wide as their widest cell; ends with a line break. Without rows: only the titles. */
export function tableText<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = [
    columns.map((column) => column.title),
    ...rows.map((row) => columns.map(({ value }) => oneLine(value(row)))),
  ];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => widthOf(line[index] ?? ''))));
  const lines = cells.map((line) =>
    line
      .map((cell, index) => padded(cell, widths[index] ?? 0, columns[index]?.align))
      .join(GAP)
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

function padded(cell: string, width: number, align: 'right' | undefined): string {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(cell)));
  return align === 'right' ? blanks + cell : cell + blanks;
}

function widthOf(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}

/** What tenants wrote (messages, names) is printed on an operator's terminal: escape sequences must not work there. */
function oneLine(cell: string): string {
  return cell.replace(/\s+/g, ' ').replace(CONTROL_EXCEPT_COLOUR, '');
}

/** Our own colours (SGR) are the only control sequences that pass. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const CONTROL_EXCEPT_COLOUR = /\u001b(?!\[\d{0,2}m)|[\u0000-\u001a\u001c-\u001f\u007f-\u009f]/g;
