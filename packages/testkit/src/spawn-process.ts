import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

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

/** Of what a long-lived program writes only the end is kept. */
const MAX_OUTPUT_CHARACTERS = 8 * 1024 * 1024;

/** What a process writes, as text, and who waits for something in it. */
export class ProcessOutput {
  #combined = '';
  #stdout = '';
  #endReason: string | undefined;
  readonly #name: string;
  readonly #listeners = new Set<() => void>();

  constructor(name: string, streams: { stdout: Readable; stderr: Readable }) {
    this.#name = name;
    streams.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-MAX_OUTPUT_CHARACTERS);
      this.append(text);
    });
    streams.stderr.setEncoding('utf8').on('data', (text: string) => this.append(text));
  }

  get combined(): string {
    return this.#combined;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get tail(): string {
    return this.#combined.trimEnd().split('\n').slice(-30).join('\n');
  }

  append(text: string): void {
    this.#combined = (this.#combined + text).slice(-MAX_OUTPUT_CHARACTERS);
    for (const check of this.#listeners) check();
  }

  /** No more will come; `how` says why. Whoever still waits fails. */
  end(how: string): void {
    this.#endReason = how;
    for (const check of this.#listeners) check();
  }

  async waitFor(what: RegExp | ((output: string) => boolean), options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs = 30_000 } = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string): void => reject(new Error(`${this.#name} ${why}:\n${this.tail}`));
    const check = (): void => {
      if (what instanceof RegExp ? what.test(this.#combined) : what(this.#combined)) resolve();
      else if (this.#endReason !== undefined) fail(`ended before it showed ${what}, ${this.#endReason}`);
    };
    const timer = setTimeout(() => fail(`has not shown ${what} in ${timeoutMs} ms`), timeoutMs);
    this.#listeners.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(check);
    }
  }
}

const SETPRIV = '/usr/bin/setpriv';

/**
 * The command, such that Linux sends it the signal when we end, even by SIGKILL: nothing is left behind that runs on, or holds a
 * lock. The request survives exec, so that the pid is the program's own.
 */
export function withParentDeathSignal(
  signal: 'KILL' | 'TERM',
  command: string,
  args: readonly string[],
): [command: string, args: readonly string[]] {
  return existsSync(SETPRIV) ? [SETPRIV, ['--pdeathsig', signal, command, ...args]] : [command, args];
}
