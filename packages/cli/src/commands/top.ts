import type { LiveFrame } from '@weir/console';
import { type Command, Option } from 'commander';
import { ConsoleError } from '../client/console-client.ts';
import { liveFrames } from '../client/live-frames.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import type { CommandContext } from '../command-context.ts';
import { toSingleLine } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { type TopClientsResponse, topClientsText } from '../output/top-clients-text.ts';
import { refusalText, SORT_COLUMNS, type SortColumn, sortedFrame, topText } from '../output/top-text.ts';

const EXAMPLES = `
Examples:
  weir top                               live view; Ctrl-C ends it
  weir top --tenant shop --sort in
  weir top --refused                     which Services refuse clients, and why
  weir top --clients shop                which clients of tenant shop use the most, in the last 5 to 10 minutes
  weir top --once -o json                one frame, for scripts

CONN/S and REQ/S count new connections and HTTP requests per second. 5XX is the share of these requests that were
answered with a status of 500 to 599. REFUSED/S counts connections, UDP flows and HTTP requests that were refused.`;

interface TopOptions extends ServerOptions {
  readonly tenant?: string;
  readonly sort?: SortColumn;
  readonly refused: boolean;
  readonly clients?: string;
  readonly once: boolean;
  readonly output: OutputFormat;
}

/**
 * Escape sequences that move the cursor to the top left and erase the screen, so that a frame replaces the previous frame without flicker.
 */
const REDRAW = '\u001b[H\u001b[J';
const CLEAR = '\u001b[2J';

const CONNECTION_LOST = 'lost the connection to the console; run the command again';

export function addTop(program: Command, { terminal }: CommandContext): void {
  program
    .command('top')
    .description('show live bandwidth, connections and requests per tenant and Service')
    .option('--tenant <name>', 'show only this tenant')
    .addOption(
      new Option(
        '--sort <column>',
        'column to sort by; total is in + out (default: "total", or "refused" with --refused)',
      ).choices(SORT_COLUMNS),
    )
    .option('--refused', 'show the tenants and Services that refuse clients, with the reasons', false)
    .addOption(
      new Option('--clients <tenant>', 'show the clients of this tenant with the most bytes and connections').conflicts(
        ['refused', 'sort', 'tenant'],
      ),
    )
    .option('--once', 'print one frame and exit, as always if stdout is not a terminal', false)
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: TopOptions) => {
      if (options.clients !== undefined) return printClients(options, options.clients);
      const live = terminal.isTerminal && !options.once && options.output === 'table';
      if (live) terminal.out(CLEAR);
      for await (const frame of framesOf(options)) {
        const shown = sortedFrame(frame, { ...options, sort: options.sort ?? (options.refused ? 'refused' : 'total') });
        if (options.tenant !== undefined && shown.tenants.length === 0) {
          throw new ConsoleError(
            'NOT_FOUND',
            `unknown tenant "${options.tenant}"; run \`weir get tenants\` to list the tenants`,
          );
        }
        const text = (): string => (options.refused ? refusalText : topText)(shown, terminal.colour);
        if (!live) return printResult(terminal, options.output, { data: shown, table: text });
        terminal.out(REDRAW + truncateLines(text()));
      }
    });

  async function printClients(options: TopOptions, tenant: string): Promise<void> {
    const path = `/api/v1/tenants/${encodeURIComponent(tenant)}/top-clients`;
    const found = await clientFor(terminal, options).get<TopClientsResponse>(path);
    for (const { node, problem } of found.missing)
      terminal.err(`weir: the clients at node ${toSingleLine(node)} are missing: ${toSingleLine(problem)}\n`);
    printResult(terminal, options.output, { data: found, table: () => topClientsText(found) });
  }

  /** Yields frames until the user presses Ctrl-C. */
  async function* framesOf(options: TopOptions): AsyncGenerator<LiveFrame> {
    try {
      yield* liveFrames(clientFor(terminal, options), terminal.signal);
      if (!terminal.signal.aborted) throw new ConsoleError('NO_CONSOLE', CONNECTION_LOST);
    } catch (error) {
      if (terminal.signal.aborted) return;
      if (error instanceof ConsoleError) throw error;
      throw new ConsoleError('NO_CONSOLE', CONNECTION_LOST, { cause: error });
    }
  }

  /** Cuts lines at the width of the terminal. A longer line would wrap, and the next frame would overwrite the wrong rows. */
  function truncateLines(text: string): string {
    const columns = terminal.columns() ?? 80;
    return text
      .split('\n')
      .map((line) => (line.length > columns && !line.includes('\u001b') ? line.slice(0, columns) : line))
      .join('\n');
  }
}
