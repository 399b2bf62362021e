import { formatDuration } from '@weir/model/cut-off';
import {
  askLocalProxies,
  type LocalOptions,
  type LocalOutcome,
  type LocalRequest,
  localUser,
  targetQuery,
} from '../client/local-proxies.ts';
import { type SuspensionTargetJson, targetArguments, targetText } from '../client/target.ts';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { type OutputFormat, printResult } from '../output/format.ts';

interface LocalCommandOptions extends LocalOptions {
  readonly output: OutputFormat;
}

export interface LocalSuspendOptions extends LocalCommandOptions {
  readonly message: string;
  /** Milliseconds. */
  readonly for?: number;
}

/** Runs `weir suspend --local`. */
export async function suspendLocally(
  context: CommandContext,
  target: SuspensionTargetJson,
  options: LocalSuspendOptions,
): Promise<void> {
  const { message, for: durationMs } = options;
  const query = {
    ...targetQuery(target),
    ...localUser(context.terminal),
    message,
    ...(durationMs === undefined ? {} : { for: formatDuration(durationMs) }),
  };
  await run(context, options, {
    request: { method: 'POST', path: '/suspend', query },
    target,
    text: (node, until) =>
      `${targetText(target)} is suspended on node ${node} only, ${until === null ? 'until resumed' : `until ${until}`}; \`weir resume ${targetArguments(target)} --local\` on this node lifts the cut-off\n`,
  });
}

/** Runs `weir resume --local`. */
export async function resumeLocally(
  context: CommandContext,
  target: SuspensionTargetJson,
  options: LocalCommandOptions,
): Promise<void> {
  const query = { ...targetQuery(target), ...localUser(context.terminal) };
  await run(context, options, {
    request: { method: 'POST', path: '/resume', query },
    target,
    text: (node) => `the local cut-off of ${targetText(target)} on node ${node} is lifted\n`,
  });
}

interface LocalCommand {
  readonly request: LocalRequest;
  readonly target: SuspensionTargetJson;
  /** Returns the line for one node. `until` is RFC 3339, or null. */
  readonly text: (node: string, until: string | null) => string;
}

async function run(
  { terminal, finish }: CommandContext,
  options: LocalCommandOptions,
  { request, target, text }: LocalCommand,
): Promise<void> {
  const outcome = await askLocalProxies(terminal, options, request);
  for (const warning of warningsFor(outcome, target)) terminal.err(`weir: ${warning}\n`);
  const { answers, failures } = outcome;
  printResult(terminal, options.output, {
    data: { items: answers.flatMap(({ items }) => items) },
    table: () => answers.map(({ node, items }) => text(node, items[0]?.until ?? null)).join(''),
  });
  finish(failures.length === 0 ? EXIT_OK : EXIT_PROBLEM);
}

function warningsFor({ answers, failures }: LocalOutcome, target: SuspensionTargetJson): readonly string[] {
  return [
    ...failures,
    ...answers
      .filter(({ services }) => services === 0)
      .map(({ node }) => `node ${node} serves no Service of ${targetText(target)}; check the name`),
    ...answers
      .filter(({ isSaved }) => !isSaved)
      .map(
        ({ node }) =>
          `the proxy on node ${node} failed to write its state directory, so a restart of the proxy undoes this`,
      ),
  ];
}
