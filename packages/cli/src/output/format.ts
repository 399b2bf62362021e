import { Option } from 'commander';
import { stringify } from 'yaml';
import type { Terminal } from '../terminal.ts';

export const OUTPUT_FORMATS = ['table', 'json', 'yaml'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(OUTPUT_FORMATS).default('table');
}

export interface CommandResult {
  readonly data: unknown;
  /** The text of `-o table`. */
  readonly table: () => string;
}

/** Prints what a command found in the form that was asked for. */
export function printResult(terminal: Terminal, format: OutputFormat, printed: CommandResult): void {
  terminal.out(textFor(format, printed));
}

function textFor(format: OutputFormat, { data, table }: CommandResult): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(data, null, 2)}\n`;
    case 'yaml':
      return stringify(data, { lineWidth: 0, aliasDuplicateObjects: false });
    case 'table':
      return table();
  }
}
