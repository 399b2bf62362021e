import { type Command, Option } from 'commander';
import { ConsoleError } from '../client/console-client.ts';
import { linesOf } from '../client/live-frames.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import { parseServiceName } from '../client/target.ts';
import type { CommandContext } from '../command-context.ts';
import { bytesText } from '../output/amounts.ts';
import { type Colourize, colourizeFor, toSingleLine } from '../output/ansi.ts';

const EXAMPLES = `
Examples:
  weir logs shop/web                     one line per request, until Ctrl-C
  weir logs shop/web -o json | jq 'select(.status >= 500)'

The Service needs the annotation weir.dev/access-log. The command prints the requests that end from now on. A reader that
is too slow misses lines, and stderr says how many.`;

const FORMATS = ['table', 'json'] as const;

interface LogsOptions extends ServerOptions {
  readonly output: (typeof FORMATS)[number];
}

/** A line of the access log (docs/access-log.md), or a message of the console instead. */
interface LogLine {
  readonly time: string;
  readonly client: string;
  readonly method: string | null;
  readonly host: string | null;
  readonly path: string | null;
  readonly query?: string;
  readonly status: number | null;
  readonly reason: string | null;
  readonly sentBytes: number;
  readonly durationMs: number;
  readonly endpoint: string | null;
  /** Set if lines are missing here: how many. */
  readonly dropped?: number;
  /** Set if the lines of a proxy are missing from now on: why. */
  readonly problem?: string;
}

const CONNECTION_LOST = 'lost the connection to the console; run the command again';

export function addLogs(program: Command, { terminal }: CommandContext): void {
  program
    .command('logs')
    .description('follow the access log of one Service')
    .argument('<namespace/service>', 'the Service to follow')
    .addOption(
      new Option('-o, --output <format>', 'output format; json: one object per line').choices(FORMATS).default('table'),
    )
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (text: string, options: LogsOptions) => {
      const { namespace, name } = parseServiceName(text);
      const path = `/api/v1/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/access-log`;
      const paint = colourizeFor(terminal.colour);
      for await (const line of follow(path, options)) {
        const parsed = parseLine(line);
        if (parsed === undefined) continue;
        if (parsed.dropped !== undefined) terminal.err(`weir: ${parsed.dropped} lines are missing here\n`);
        else if (parsed.problem !== undefined) terminal.err(`weir: ${toSingleLine(parsed.problem)}\n`);
        else terminal.out(options.output === 'json' ? `${line}\n` : lineText(parsed, paint));
      }
    });

  /** Yields lines until the user presses Ctrl-C. */
  async function* follow(path: string, options: LogsOptions): AsyncGenerator<string> {
    try {
      yield* linesOf(await clientFor(terminal, options).stream(path, terminal.signal));
      if (!terminal.signal.aborted) throw new ConsoleError('NO_CONSOLE', CONNECTION_LOST);
    } catch (error) {
      if (terminal.signal.aborted) return;
      if (error instanceof ConsoleError) throw error;
      throw new ConsoleError('NO_CONSOLE', CONNECTION_LOST, { cause: error });
    }
  }
}

/** Returns undefined for an empty line, by which the console shows that the connection works, and for a damaged line. */
function parseLine(line: string): LogLine | undefined {
  if (line === '') return undefined;
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}

function lineText(line: LogLine, paint: Colourize): string {
  const { time, client, method, host, path, query, status, reason, sentBytes, durationMs, endpoint } = line;
  const target = path === null ? '' : `${host ?? ''}${path}${query === undefined ? '' : `?${query}`}`;
  const parts = [
    time,
    statusText(status, paint),
    `${Math.round(durationMs)} ms`.padStart(8),
    bytesText(sentBytes).padStart(8),
    client,
    method ?? '-',
    target === '' ? '-' : target,
    ...(endpoint === null ? [] : [`-> ${endpoint}`]),
    ...(reason === null ? [] : [`(${reason})`]),
  ];
  return `${toSingleLine(parts.join(' '))}\n`;
}

function statusText(status: number | null, paint: Colourize): string {
  const text = status === null ? '---' : String(status);
  if (status === null || status >= 500) return paint('red', text);
  return status >= 400 ? paint('yellow', text) : text;
}
