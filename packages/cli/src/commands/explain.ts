import type { Command } from 'commander';
import type { ServiceExplanation } from '../client/answers.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-option.ts';
import { parseServiceName } from '../client/target.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK, EXIT_PROBLEM } from '../exit-code.ts';
import { explanationText } from '../output/explanation-text.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';

const EXAMPLES = `
Examples:
  weir explain shop/web                  why it is pending, where it is bound, its endpoints, its limits
  weir explain shop/web -o yaml

Exit code 1 unless the Service is programmed.`;

export function addExplain(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('explain')
    .description('why one Service is as it is')
    .argument('<namespace/service>', 'which Service')
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (text: string, options: ServerOptions & { output: OutputFormat }) => {
      const { namespace, name } = parseServiceName(text);
      const path = `/api/v1/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
      const data = await clientFor(terminal, options).get<ServiceExplanation>(path);
      printResult(terminal, options.output, { data, table: () => explanationText(data, terminal.colour) });
      finish(data.state === 'Programmed' ? EXIT_OK : EXIT_PROBLEM);
    });
}
