import type { LiveFrame } from '@weir/console';
import { type Command, Option } from 'commander';
import { ConsoleError } from '../client/console-client.ts';
import { liveFrames } from '../client/live-frames.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import type { CommandContext } from '../command-context.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { SORT_COLUMNS, type SortColumn, sortedFrame, topText } from '../output/top-text.ts';

const EXAMPLES = `
Examples:
  weir top                               live, by tenant and Service; Ctrl-C ends
  weir top --tenant shop --sort in
  weir top --once -o json                one frame, for scripts`;

interface TopOptions extends ServerOptions {
  readonly tenant?: string;
  readonly sort: SortColumn;
  readonly once: boolean;
  readonly output: OutputFormat;
}

/** Cursor home and erase what is below: the frame is drawn over the one before, without flicker. */
const REDRAW = '\u001b[H\u001b[J';
const CLEAR = '\u001b[2J';

export function addTop(program: Command, { terminal }: CommandContext): void {
  program
    .command('top')
    .description('live bandwidth, connections and requests, per tenant and Service')
    .option('--tenant <name>', 'only this tenant')
    .addOption(new Option('--sort <column>', 'what comes first').choices(SORT_COLUMNS).default('out'))
    .option('--once', 'one frame, then end (also when this is no terminal)', false)
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: TopOptions) => {
      const live = terminal.isTerminal && !options.once && options.output === 'table';
      if (live) terminal.out(CLEAR);
      for await (const frame of framesOf(options)) {
        const shown = sortedFrame(frame, options);
        if (options.tenant !== undefined && shown.tenants.length === 0) {
          throw new ConsoleError(
            'NOT_FOUND',
            `tenant "${options.tenant}" is not known; \`weir get tenants\` lists them`,
          );
        }
        const text = (): string => topText(shown, terminal.colour);
        if (!live) return printResult(terminal, options.output, { data: shown, table: text });
        terminal.out(REDRAW + cut(text()));
      }
    });

  /** Until Ctrl-C, which is how one leaves. */
  async function* framesOf(options: TopOptions): AsyncGenerator<LiveFrame> {
    try {
      yield* liveFrames(clientFor(terminal, options), terminal.signal);
      if (!terminal.signal.aborted) throw new ConsoleError('NO_CONSOLE', 'the console went away');
    } catch (error) {
      if (terminal.signal.aborted) return;
      if (error instanceof ConsoleError) throw error;
      throw new ConsoleError('NO_CONSOLE', 'the console went away', { cause: error });
    }
  }

  /** A line that is too long would wrap, and the next frame would be drawn over the wrong rows. */
  function cut(text: string): string {
    const columns = terminal.columns() ?? 80;
    return text
      .split('\n')
      .map((line) => (line.length > columns && !line.includes('\u001b') ? line.slice(0, columns) : line))
      .join('\n');
  }
}
