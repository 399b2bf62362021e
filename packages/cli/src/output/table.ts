import { stripVTControlCharacters } from 'node:util';
import { toSingleLine } from './ansi.ts';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly align?: 'right';
}

const GAP = '   ';

/** Returns a table as text: a line of titles, and a line per row. Each column is as wide as its widest cell. */
export function tableText<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return linesText(columns, [columns.map((column) => column.title), ...cellsOf(columns, rows)]);
}

/** Returns the rows of a table as text, without the line of titles. */
export function rowsText<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return linesText(columns, cellsOf(columns, rows));
}

function cellsOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[][] {
  return rows.map((row) => columns.map(({ value }) => toSingleLine(value(row))));
}

function linesText<Row>(columns: readonly Column<Row>[], cells: readonly (readonly string[])[]): string {
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
