import { formatHostPort } from '@weir/runtime';
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
  weir logs shop/web                     one line per request or connection, until Ctrl-C
  weir logs shop/web -o json | jq 'select(.status >= 500)'
  weir logs shop/db -o json | jq 'select(.reason != null)'    refused clients

The Service needs the annotation weir.dev/access-log. The command prints the requests and connections
that end from now on. A reader that is too slow misses lines, and stderr says how many.`;

const FORMATS = ['table', 'json'] as const;

interface LogsOptions extends ServerOptions {
  readonly output: (typeof FORMATS)[number];
}

/** What the lines of requests and of connections have in common (docs/access-log.md). */
interface CommonMembers {
  readonly time: string;
  readonly client: string | null;
  readonly reason: string | null;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly durationMs: number;
  readonly protocol: string | null;
  readonly endpoint: string | null;
}

interface RequestLine extends CommonMembers {
  readonly method: string | null;
  readonly host: string | null;
  readonly path: string | null;
  readonly query?: string;
  readonly status: number | null;
}

interface ConnectionLine extends CommonMembers {
  readonly clientPort: number | null;
  readonly listener: string;
  readonly outcome: string;
}

/** A message of the console in place of a line. */
interface Message {
  /** Set if lines are missing here: how many. */
  readonly dropped?: number;
  /** Set if the lines of a proxy are missing from now on: why. */
  readonly problem?: string;
}

type LogLine = (RequestLine | ConnectionLine) & Message;

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
  return toSingleLine('outcome' in line ? connectionText(line, paint) : requestText(line, paint)).concat('\n');
}

function connectionText(line: ConnectionLine, paint: Colourize): string {
  const { time, outcome, reason, durationMs, receivedBytes, sentBytes, client, clientPort, endpoint } = line;
  return [
    time,
    reason === null ? outcome : paint('red', outcome),
    `${Math.round(durationMs)} ms`.padStart(8),
    `${bytesText(receivedBytes)} received, ${bytesText(sentBytes)} sent`,
    client === null ? '-' : formatHostPort({ host: client, port: clientPort ?? 0 }),
    line.protocol ?? '-',
    line.listener,
    ...(endpoint === null ? [] : [`-> ${endpoint}`]),
  ].join(' ');
}

function requestText(line: RequestLine, paint: Colourize): string {
  const { time, client, method, host, path, query, status, reason, sentBytes, durationMs, endpoint } = line;
  const target = path === null ? '' : `${host ?? ''}${path}${query === undefined ? '' : `?${query}`}`;
  const parts = [
    time,
    statusText(status, paint),
    `${Math.round(durationMs)} ms`.padStart(8),
    bytesText(sentBytes).padStart(8),
    client ?? '-',
    method ?? '-',
    target === '' ? '-' : target,
    ...(endpoint === null ? [] : [`-> ${endpoint}`]),
    ...(reason === null ? [] : [`(${reason})`]),
  ];
  return parts.join(' ');
}

function statusText(status: number | null, paint: Colourize): string {
  const text = status === null ? '---' : String(status);
  if (status === null || status >= 500) return paint('red', text);
  return status >= 400 ? paint('yellow', text) : text;
}
