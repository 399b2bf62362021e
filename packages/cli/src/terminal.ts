/** What a command sees of the world it was started in; `main.ts` makes the real one. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What was asked for. */
  out(text: string): void;
  /** Everything else: progress, problems, the line `ready`. */
  err(text: string): void;
  /** Whether stdout is a terminal: then a live view redraws. */
  readonly isTerminal: boolean;
  /** Width of the terminal; undefined when stdout is none. */
  columns(): number | undefined;
  readonly colour: boolean;
  /** Aborted by SIGINT, SIGTERM, or the end of whoever started us. */
  readonly signal: AbortSignal;
}

/** Colours only for eyes: not into files, and not where NO_COLOR asks for none (https://no-color.org: set and not empty). */
export function wantsColour(env: Terminal['env'], isTerminal: boolean): boolean {
  return isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The terminal of this process, and its end. A second signal ends it at once. */
export function processTerminal(): { readonly terminal: Terminal; exit(code: number): void } {
  const stopping = new AbortController();
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(128 + (signal === 'SIGINT' ? 2 : signal === 'SIGHUP' ? 1 : 15));
      stopping.abort();
    });
  }
  stopWithParent(stopping);
  // `weir … | head` closes our output: that is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  const { isTTY } = process.stdout;
  return {
    terminal: {
      env: process.env,
      out: (text) => void process.stdout.write(text),
      err: (text) => void process.stderr.write(text),
      isTerminal: isTTY,
      // Some pseudo terminals say 0: they do not know.
      columns: () => (isTTY ? process.stdout.columns || undefined : undefined),
      colour: wantsColour(process.env, isTTY),
      signal: stopping.signal,
    },
    exit(code) {
      process.exitCode = code;
      // What was written to a pipe leaves before the process does; nothing else is worth waiting for.
      process.stdout.write('', () => process.exit(code));
    },
  };
}

/** Started by an old Node (`bin/weir.js`): when that one is killed, nobody would end us. */
function stopWithParent(stopping: AbortController): void {
  if (process.channel === undefined || process.channel === null) return;
  process.channel.unref();
  process.once('disconnect', () => stopping.abort());
}
