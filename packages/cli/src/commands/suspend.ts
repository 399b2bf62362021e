import type { SuspensionItem } from '@weir/console';
import { parseDuration } from '@weir/model/cut-off';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConsoleClient, ConsoleError } from '../client/console-client.ts';
import { type LocalOptions, localOption, stateOption } from '../client/local-proxies.ts';
import type { ItemList } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import { isSameTarget, suspensionTargetFor, targetArguments, targetText } from '../client/target.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM, type ExitCode } from '../command-context.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { resumeLocally, suspendLocally } from './local-suspend.ts';

const SUSPEND_EXAMPLES = `
Examples:
  weir suspend uploader --message "You fill the link; call the platform team."
  weir suspend shop/web --message "Under attack" --for 10m
  weir suspend --namespace shop --message "Leaked credentials" --for 1h
  sudo weir suspend uploader --message "Redis is away" --local
  weir suspend shop/web --message "Under attack" --for 5m --replace

Every proxy refuses new connections of the target and resets the target's open connections. Other tenants are not
affected. If you suspend a target again, the new message and end replace the message and end of your earlier Suspension.
--replace is needed to replace a Suspension of another user, or a Suspension that ends later than the new Suspension.

While the console or Redis does not answer, run the command with --local on each node. Such a cut-off holds only on its
node, even after a restart, until its end or \`weir resume --local\`.`;

interface SuspendOptions extends ServerOptions, LocalOptions {
  readonly namespace?: string;
  readonly message: string;
  readonly for?: number;
  readonly replace?: true;
  readonly output: OutputFormat;
}

export function addSuspend(program: Command, context: CommandContext): void {
  const { terminal } = context;
  program
    .command('suspend')
    .description('cut off a tenant, a namespace or a Service at once')
    .argument('[target]', 'TENANT or NAMESPACE/SERVICE')
    .addOption(namespaceOption())
    .requiredOption('--message <text>', 'message that the tenant sees')
    .addOption(
      new Option('--for <duration>', 'duration, such as 10m or 1h30m (default: until resumed)').argParser(
        parseSuspensionDuration,
      ),
    )
    .option(
      '--replace',
      'also replace a Suspension of another user, or a Suspension that ends later than the new Suspension',
    )
    .addOption(localOption())
    .addOption(stateOption())
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', SUSPEND_EXAMPLES)
    .action(async (text: string | undefined, options: SuspendOptions) => {
      const target = suspensionTargetFor(text, options.namespace);
      if (options.local) return suspendLocally(context, target, options);
      const until = options.for === undefined ? {} : { until: new Date(Date.now() + options.for).toISOString() };
      const body = { target, message: options.message, ...until };
      const path = `/api/v1/suspensions${options.replace === true ? '?replace=true' : ''}`;
      const data = await clientFor(terminal, options).post<SuspensionItem>(path, body);
      const end = data.until === null ? 'until resumed' : `until ${data.until}`;
      const line = `${targetText(target)} is suspended ${end}; \`weir resume ${targetArguments(target)}\` lifts the cut-off\n`;
      printResult(terminal, options.output, { data, table: () => line });
    });
}

function namespaceOption(): Option {
  return new Option('-n, --namespace <name>', 'all Services of this namespace, instead of a tenant or one Service');
}

/** Ten years. Without a bound, the end could be a time that RFC 3339 cannot write. */
const MAX_SUSPENSION_MS = 3_650 * 86_400_000;

function parseSuspensionDuration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1_000 || ms > MAX_SUSPENSION_MS)
    throw new InvalidArgumentError('Use a duration such as 30s, 10m or 2h, at most 3650d, or leave out --for.');
  return ms;
}

const RESUME_EXAMPLES = `
Examples:
  weir resume uploader
  weir resume shop/web
  weir resume --namespace shop
  sudo weir resume uploader --local

The command deletes every Suspension of exactly this target. If weir standalone read a Suspension from a file, delete
the Suspension in that file.`;

interface ResumeOptions extends ServerOptions, LocalOptions {
  readonly namespace?: string;
  readonly output: OutputFormat;
}

export function addResume(program: Command, context: CommandContext): void {
  const { terminal, finish } = context;
  program
    .command('resume')
    .description('end the cut-off of a tenant, a namespace or a Service')
    .argument('[target]', 'TENANT or NAMESPACE/SERVICE')
    .addOption(namespaceOption())
    .addOption(localOption())
    .addOption(stateOption())
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', RESUME_EXAMPLES)
    .action(async (text: string | undefined, options: ResumeOptions) => {
      const target = suspensionTargetFor(text, options.namespace);
      if (options.local) return resumeLocally(context, target, options);
      const client = clientFor(terminal, options);
      const { items } = await client.get<ItemList<SuspensionItem>>('/api/v1/suspensions');
      const targeted = items.filter((item) => isSameTarget(target, item.target));
      if (targeted.length === 0) {
        terminal.err(`weir: ${targetText(target)} has no Suspension\n`);
        return finish(EXIT_PROBLEM);
      }
      const { lifted, refusals } = await resumeAll(client, targeted);
      for (const refusal of refusals) terminal.err(`weir: ${refusal}\n`);
      const line = lifted.length === 0 ? '' : `${targetText(target)} is no longer suspended\n`;
      printResult(terminal, options.output, {
        data: { items: lifted },
        table: () => (refusals.length === 0 ? line : ''),
      });
      finish(exitCodeForRefusals(refusals));
    });
}

interface ResumeResult {
  readonly lifted: readonly SuspensionItem[];
  readonly refusals: readonly string[];
}

/** Deletes the Suspensions. If the console refuses to delete a Suspension, continues with the next Suspension. */
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

function exitCodeForRefusals(refusals: readonly string[]): ExitCode {
  return refusals.length === 0 ? EXIT_OK : EXIT_PROBLEM;
}
