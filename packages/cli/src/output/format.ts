import { Option } from 'commander';
import { stringify } from 'yaml';
import type { Terminal } from '../terminal.ts';

export const FORMATS = ['table', 'json', 'yaml'] as const;
export type Format = (typeof FORMATS)[number];

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(FORMATS).default('table');
}

export interface Printed {
  readonly data: unknown;
  /** The text of `-o table`. */
  readonly table: () => string;
}

/** Prints what a command found in the form that was asked for. */
export function print(terminal: Terminal, format: Format, printed: Printed): void {
  terminal.out(textFor(format, printed));
}

function textFor(format: Format, { data, table }: Printed): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(data, null, 2)}\n`;
    case 'yaml':
      return stringify(data, { lineWidth: 0, aliasDuplicateObjects: false });
    case 'table':
      return table();
  }
}
