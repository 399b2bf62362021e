import { createRequire } from 'node:module';
import { Option } from 'commander';
import type { Terminal } from '../terminal.ts';

/** Loads a package when it is needed, because each package delays the start of `weir suspend`. */
const require = createRequire(import.meta.url);

export const OUTPUT_FORMATS = ['table', 'json', 'yaml'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table');
}

export interface CommandResult {
  readonly data: unknown;
  /** The text of `-o table`. */
  readonly table: () => string;
}

export function printResult(terminal: Terminal, format: OutputFormat, result: CommandResult): void {
  terminal.out(textFor(format, result));
}

function textFor(format: OutputFormat, { data, table }: CommandResult): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(data, null, 2)}\n`;
    case 'yaml': {
      const { stringify } = require('yaml') as typeof import('yaml');
      return stringify(data, { lineWidth: 0, aliasDuplicateObjects: false });
    }
    case 'table':
      return table();
  }
}
