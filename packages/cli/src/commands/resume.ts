import type { SuspensionItem } from '@weir/console';
import type { Command } from 'commander';
import type { ItemList } from '../client/answers.ts';
import { type ConsoleClient, ConsoleError } from '../client/console-client.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-option.ts';
import { isSameTarget, parseTarget, targetText } from '../client/target.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK, EXIT_PROBLEM, type ExitCode } from '../exit-code.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';

const RESUME_EXAMPLES = `
Examples:
  weir resume uploader
  weir resume shop/web

Lifts every Suspension of exactly this target. One that stands in a file is lifted by deleting it there.`;

export function addResume(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('resume')
    .description('lift what `weir suspend` did')
    .argument('<target>', 'TENANT or NAMESPACE/SERVICE')
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', RESUME_EXAMPLES)
    .action(async (text: string, options: ServerOptions & { output: OutputFormat }) => {
      const target = parseTarget(text);
      const client = clientFor(terminal, options);
      const { items } = await client.get<ItemList<SuspensionItem>>('/api/v1/suspensions');
      const own = items.filter((item) => isSameTarget(target, { ...item.target }));
      if (own.length === 0) {
        terminal.err(`weir: ${targetText(target)} has no Suspension\n`);
        return finish(EXIT_PROBLEM);
      }
      const { lifted, refusals } = await resumeAll(client, own);
      for (const refusal of refusals) terminal.err(`weir: ${refusal}\n`);
      const line = lifted.length === 0 ? '' : `${targetText(target)} is no longer suspended\n`;
      printResult(terminal, options.output, {
        data: { items: lifted },
        table: () => (refusals.length === 0 ? line : ''),
      });
      finish(exitCodeFor(refusals));
    });
}

interface ResumeResult {
  readonly lifted: readonly SuspensionItem[];
  readonly refusals: readonly string[];
}

/** All that can be lifted, also when one of them cannot. */
async function resumeAll(client: ConsoleClient, items: readonly SuspensionItem[]): Promise<ResumeResult> {
  const lifted: SuspensionItem[] = [];
  const refusals: string[] = [];
  for (const item of items) {
    try {
      lifted.push(await client.delete<SuspensionItem>(`/api/v1/suspensions/${encodeURIComponent(item.name)}`));
    } catch (error) {
      if (!(error instanceof ConsoleError) || error.code === 'NO_CONSOLE') throw error;
      refusals.push(error.message);
    }
  }
  return { lifted, refusals };
}

function exitCodeFor(refusals: readonly string[]): ExitCode {
  return refusals.length === 0 ? EXIT_OK : EXIT_PROBLEM;
}
