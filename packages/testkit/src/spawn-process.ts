import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { withParentDeathSignal } from './ending-with-us.ts';
import { ProcessOutput } from './process-output.ts';

export type SpawnOptions = {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** For messages; the command by default. */
  readonly name?: string;
  /** What its output must show, stdout and stderr together, before `spawnProcess` returns. Absent: returns at once. */
  readonly readyWhen?: RegExp | ((output: string) => boolean);
  readonly readyTimeoutMs?: number;
  /** It may end by itself. Otherwise an end that nobody asked for fails the test that runs. */
  readonly mayExit?: boolean;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type SpawnedProcess = AsyncDisposable & {
  readonly pid: number;
  /** What it has written so far, stdout and stderr together; `stdout` alone for those that print data. */
  output(): string;
  stdout(): string;
  /** Resolves when it has ended and its output is complete. */
  readonly exited: Promise<Exit>;
  /** Resolves when the output shows it. */
  waitForOutput(what: RegExp | ((output: string) => boolean), options?: { timeoutMs?: number }): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal (default SIGTERM) and waits for the end; SIGKILL follows after 10 s. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
  close(): Promise<void>;
};

export async function spawnProcess(options: SpawnOptions): Promise<SpawnedProcess> {
  const { command, args = [], name = command, readyWhen, readyTimeoutMs = 60_000 } = options;
  const [program, programArguments] = withParentDeathSignal('KILL', command, args);
  const child = spawn(program, programArguments, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: 'pipe',
    // Ctrl-C in a terminal goes to our whole group; it is for us, who end the others in their order.
    detached: program !== command,
  });
  child.stdin.end();
  const output = new ProcessOutput(name, child);
  const { promise: exited, resolve: resolveExited } = Promise.withResolvers<Exit>();
  let ended: Exit | undefined;
  /** Before it is ready its end is reported by whoever waits for that. */
  let mayEnd = true;

  const handles = [child, child.stdout as Socket, child.stderr as Socket];
  const hold = (): void => {
    for (const handle of handles) handle.ref();
  };
  const finish = (exit: Exit): void => {
    if (ended) return;
    ended = exit;
    output.end(describeExit(exit));
    resolveExited(exit);
    if (!mayEnd) throw new Error(`${name} ended by itself, ${describeExit(exit)}:\n${output.tail}`);
  };
  child.once('error', (error) => {
    output.append(`${error.message}\n`);
    if (child.pid === undefined) finish({ code: null, signal: null });
  });
  child.once('close', (code, signal) => finish({ code, signal }));

  const signal = (which: NodeJS.Signals): void => {
    mayEnd ||= TERMINATING_SIGNALS.has(which);
    child.kill(which);
  };
  const stop = async (which: NodeJS.Signals = 'SIGTERM'): Promise<Exit> => {
    mayEnd = true;
    if (ended) return ended;
    hold();
    signal(which);
    // one that is stopped by SIGSTOP takes no other signal before it goes on
    if (which !== 'SIGKILL') signal('SIGCONT');
    const last = setTimeout(() => signal('SIGKILL'), 10_000);
    const exit = await exited;
    clearTimeout(last);
    return exit;
  };

  if (readyWhen) {
    try {
      await output.waitFor(readyWhen, { timeoutMs: readyTimeoutMs });
    } catch (error) {
      await stop('SIGKILL');
      throw error;
    }
  }
  mayEnd = options.mayExit ?? false;
  // one that a failing test forgets does not hold up the run: the process of the test ends, and with it this one
  for (const handle of handles) handle.unref();

  const close = async (): Promise<void> => void (await stop());
  return {
    pid: child.pid ?? -1,
    output: () => output.combined,
    stdout: () => output.stdout,
    get exited() {
      hold();
      return exited;
    },
    waitForOutput: (what, how) => output.waitFor(what, how),
    signal,
    stop,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Whoever sends one of these means it to end. */
const TERMINATING_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGTERM',
  'SIGINT',
  'SIGKILL',
  'SIGQUIT',
  'SIGABRT',
]);

function describeExit({ code, signal }: Exit): string {
  return signal ? `by ${signal}` : `exit code ${code}`;
}
