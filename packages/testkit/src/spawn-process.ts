import { spawn } from 'node:child_process';
import { endingWithUs } from './ending-with-us.ts';

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
  shows(what: RegExp | ((output: string) => boolean), options?: { timeoutMs?: number }): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal (default SIGTERM) and waits for the end; SIGKILL follows after 10 s. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
  close(): Promise<void>;
};

/** Of what a long-lived program writes only the end is kept. */
const longestOutput = 8 * 1024 * 1024;

export async function spawnProcess(options: SpawnOptions): Promise<SpawnedProcess> {
  const { command, args = [], name = command, readyWhen, readyTimeoutMs = 20_000 } = options;
  const [program, programArguments] = endingWithUs('KILL', command, args);
  const child = spawn(program, programArguments, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
  child.stdin.end();

  let output = '';
  let stdout = '';
  let ended: Exit | undefined;
  let stopping = false;
  const watchers = new Set<() => void>();
  const wake = (): void => {
    for (const watcher of watchers) watcher();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout = (stdout + text).slice(-longestOutput);
    output = (output + text).slice(-longestOutput);
    wake();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-longestOutput);
    wake();
  });
  const tail = (): string => output.trimEnd().split('\n').slice(-30).join('\n');
  const { promise: exited, resolve: resolveExited } = Promise.withResolvers<Exit>();
  let ready = false;
  child.once('error', (error) => {
    output += `${error.message}\n`;
    if (child.pid === undefined) finish({ code: null, signal: null });
  });
  child.once('close', (code, signal) => finish({ code, signal }));
  function finish(exit: Exit): void {
    ended = exit;
    resolveExited(exit);
    wake();
    if (ready && !stopping && !options.mayExit)
      throw new Error(`${name} ended by itself, ${describe(exit)}:\n${tail()}`);
  }

  async function shows(what: RegExp | ((output: string) => boolean), { timeoutMs = 10_000 } = {}): Promise<void> {
    const matches = (): boolean => (what instanceof RegExp ? what.test(output) : what(output));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (matches()) resolve();
      else if (ended) reject(new Error(`${name} ended before it showed ${what}, ${describe(ended)}:\n${tail()}`));
    };
    const timer = setTimeout(
      () => reject(new Error(`${name} has not shown ${what} in ${timeoutMs} ms:\n${tail()}`)),
      timeoutMs,
    );
    watchers.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      watchers.delete(check);
    }
  }

  async function stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    stopping = true;
    if (ended) return ended;
    child.kill(signal);
    // one that is stopped by SIGSTOP takes no other signal before it goes on
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    const last = setTimeout(() => child.kill('SIGKILL'), 10_000);
    const exit = await exited;
    clearTimeout(last);
    return exit;
  }

  if (readyWhen) {
    try {
      await shows(readyWhen, { timeoutMs: readyTimeoutMs });
    } catch (error) {
      await stop('SIGKILL');
      throw error;
    }
  }
  ready = true;
  const close = async (): Promise<void> => void (await stop());
  return {
    pid: child.pid ?? -1,
    output: () => output,
    stdout: () => stdout,
    exited,
    shows,
    signal: (signal) => void child.kill(signal),
    stop,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function describe({ code, signal }: Exit): string {
  return signal ? `by ${signal}` : `exit code ${code}`;
}
