import { text } from 'node:stream/consumers';
import { watchNpm } from './npm-parent.ts';

/**
 * The environment of a command: variables, output streams and signals. `main.ts` passes the environment of the process; tests pass a fake.
 */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads standard input to its end. */
  readInput(): Promise<string>;
  /** Writes the result of the command to stdout. */
  out(text: string): void;
  /** Writes progress, problems and the line `ready` to stderr. */
  err(text: string): void;
  /** Whether stdout is a terminal. On a terminal, a live view can replace its previous frame. */
  readonly isTerminal: boolean;
  /** Returns the width of the terminal, or undefined if stdout is not a terminal. */
  columns(): number | undefined;
  readonly colour: boolean;
  /** Aborted by SIGINT, SIGTERM or SIGHUP, or when the launcher process or npx ends. */
  readonly signal: AbortSignal;
}

/** Whether to print colours: only if stdout is a terminal, TERM is not `dumb`, and NO_COLOR is unset or empty (https://no-color.org). */
export function wantsColour(env: Terminal['env'], isTerminal: boolean): boolean {
  return isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Returns the terminal of this process. The first signal aborts `terminal.signal`, and the second signal ends the process at once. */
export function processTerminal(): { readonly terminal: Terminal; exit(code: number): void } {
  const stopping = new AbortController();
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(128 + (signal === 'SIGINT' ? 2 : signal === 'SIGHUP' ? 1 : 15));
      stopping.abort();
    });
  }
  // Without a listener, Node.js would open its inspector, through which local users could run code in this process.
  process.on('SIGUSR1', () => {});
  stopWithParent(stopping);
  watchNpm(process.env, () => stopping.abort());
  // In `weir … | head`, head may close the pipe early. That is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  const { isTTY } = process.stdout;
  return {
    terminal: {
      env: process.env,
      readInput: () => text(process.stdin),
      out: (output) => void process.stdout.write(output),
      err: (output) => void process.stderr.write(output),
      isTerminal: isTTY,
      // Some pseudo terminals report 0 if their width is unknown.
      columns: () => (isTTY ? process.stdout.columns || undefined : undefined),
      colour: wantsColour(process.env, isTTY),
      signal: stopping.signal,
    },
    exit(code) {
      process.exitCode = code;
      // Exits as soon as the pipe behind stdout has taken all output.
      process.stdout.write('', () => process.exit(code));
    },
  };
}

/** Stops this process when its launcher (`bin/weir.js` on an old Node.js) is killed, because the launcher then forwards no more signals. */
function stopWithParent(stopping: AbortController): void {
  if (process.channel === undefined || process.channel === null) return;
  process.channel.unref();
  process.once('disconnect', () => stopping.abort());
}
