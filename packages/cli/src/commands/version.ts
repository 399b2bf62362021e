import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { version } from '../version.ts';

const EXAMPLES = `
Examples:
  weir version
  weir version -o json

weir get proxies -o wide shows the versions of the proxies.`;

export function addVersion(program: Command, { terminal }: CommandContext): void {
  program
    .command('version')
    .description('print the version of this command and of Node.js')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(({ output }: { readonly output: OutputFormat }) => {
      const data = { version: version(), node: process.versions.node };
      printResult(terminal, output, { data, table: () => `weir ${data.version} (Node.js ${data.node})\n` });
    });
}
