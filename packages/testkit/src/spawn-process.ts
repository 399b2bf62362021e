import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

export type SpawnOptions = {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** The name for messages. Default: the command. */
  readonly name?: string;
  /**
   * `spawnProcess` resolves when the combined output of stdout and stderr matches. If undefined, `spawnProcess`
   * resolves at once.
   */
  readonly readyWhen?: RegExp | ((output: string) => boolean);
  readonly readyTimeoutMs?: number;
  /**
   * Whether the process may exit by itself. If not, an exit fails the running test, unless the test has called `stop`
   * or sent a terminating signal.
   */
  readonly mayExit?: boolean;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type SpawnedProcess = AsyncDisposable & {
  readonly pid: number;
  /** Returns the output so far of stdout and stderr combined. */
  output(): string;
  /** Returns the output so far of stdout only. */
  stdout(): string;
  /** Resolves when the process has exited and its output is complete. */
  readonly exited: Promise<Exit>;
  /** Resolves when the output matches. */
  waitForOutput(what: RegExp | ((output: string) => boolean), options?: { timeoutMs?: number }): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal (default: SIGTERM) and waits for the exit. Sends SIGKILL after 10 s. */
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
    // Ctrl-C in a terminal signals the whole process group. A separate group lets us stop the children in order.
    detached: program !== command,
  });
  child.stdin.end();
  const output = new ProcessOutput(name, child);
  const { promise: exited, resolve: resolveExited } = Promise.withResolvers<Exit>();
  let exitStatus: Exit | undefined;
  /** Whether the process may exit. True until the process is ready, because `waitFor` reports an earlier exit. */
  let mayExit = true;

  const handles = [child, child.stdout as Socket, child.stderr as Socket];
  const keepEventLoopAlive = (): void => {
    for (const handle of handles) handle.ref();
  };
  const finish = (exit: Exit): void => {
    if (exitStatus) return;
    exitStatus = exit;
    output.close(describeExit(exit));
    resolveExited(exit);
    if (!mayExit) throw new Error(`${name} exited unexpectedly, ${describeExit(exit)}:\n${output.tail}`);
  };
  child.once('error', (error) => {
    output.append(`${error.message}\n`);
    if (child.pid === undefined) finish({ code: null, signal: null });
  });
  child.once('close', (code, signal) => finish({ code, signal }));

  const signal = (which: NodeJS.Signals): void => {
    mayExit ||= TERMINATING_SIGNALS.has(which);
    child.kill(which);
  };
  const stop = async (which: NodeJS.Signals = 'SIGTERM'): Promise<Exit> => {
    mayExit = true;
    if (exitStatus) return exitStatus;
    keepEventLoopAlive();
    signal(which);
    // Continues a process that is stopped by SIGSTOP, because such a process handles no signal but SIGKILL.
    if (which !== 'SIGKILL') signal('SIGCONT');
    const killTimer = setTimeout(() => signal('SIGKILL'), 10_000);
    const exit = await exited;
    clearTimeout(killTimer);
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
  mayExit = options.mayExit ?? false;
  // A child that a failing test did not stop must not keep the test's process alive. The child dies with the test's
  // process.
  for (const handle of handles) handle.unref();

  const close = async (): Promise<void> => void (await stop());
  return {
    pid: child.pid ?? -1,
    output: () => output.combined,
    stdout: () => output.stdout,
    get exited() {
      keepEventLoopAlive();
      return exited;
    },
    waitForOutput: (what, waitOptions) => output.waitFor(what, waitOptions),
    signal,
    stop,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Terminating signals. After the test has sent one of these signals, the exit of the process is no error. */
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

/** The maximum length of the kept output. Only the last characters of a long-lived program are kept. */
const MAX_OUTPUT_CHARACTERS = 8 * 1024 * 1024;

/** Collects the output of a process and resolves `waitFor` when the output matches. */
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

  /** Marks the output as complete. Pending `waitFor` calls fail with `reason`. */
  close(reason: string): void {
    this.#endReason = reason;
    for (const check of this.#listeners) check();
  }

  async waitFor(what: RegExp | ((output: string) => boolean), options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs = 30_000 } = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (reason: string): void => reject(new Error(`${this.#name} ${reason}:\n${this.tail}`));
    const check = (): void => {
      if (what instanceof RegExp ? what.test(this.#combined) : what(this.#combined)) resolve();
      else if (this.#endReason !== undefined) fail(`exited before its output matched ${what}, ${this.#endReason}`);
    };
    const timer = setTimeout(() => fail(`did not print ${what} within ${timeoutMs} ms`), timeoutMs);
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
 * Wraps a command so that Linux sends `signal` to the program when this process dies, even by SIGKILL. So no orphan
 * keeps running or holds a lock. The setting survives exec, so the pid of the child is the program's own. Returns the
 * command unchanged if setpriv is not installed.
 */
export function withParentDeathSignal(
  signal: 'KILL' | 'TERM',
  command: string,
  args: readonly string[],
): [command: string, args: readonly string[]] {
  return existsSync(SETPRIV) ? [SETPRIV, ['--pdeathsig', signal, command, ...args]] : [command, args];
}
