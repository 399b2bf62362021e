import { type Terminal, wantsColour } from './terminal.ts';

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
