import type { EventEmitter } from 'node:events';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import { isAbort, UsageError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { exitStatusFor } from './exit-status.ts';
import { type Part, startParts } from './start-parts.ts';

export interface ProcessPlan {
  readonly log: Logger;
  readonly parts: readonly Part[];
  /** How long closing may take before the process exits with code 1. Default: 35 s, enough for a drain of 30 s. */
  readonly closeTimeoutMs?: number;
}

/** Lets the parts of a process end the process. */
export interface ProcessControl {
  /** Closes the parts and exits with code 0, as the first SIGTERM does. */
  stop(): void;
  /** Ends the process because a part cannot continue: closes the parts and exits with the exit code for `error`. */
  fail(error: unknown): void;
}

/** What `runProcess` uses of the operating system process; tests replace this object. */
export interface ProcessHost {
  /** Emits SIGTERM, SIGINT, SIGUSR1, uncaughtException and unhandledRejection. */
  readonly events: EventEmitter;
  readonly clock: Clock;
  /** The command line without the program. Default: empty. */
  readonly args?: readonly string[];
  exit(code: number): void;
  writeError(text: string): void;
}

type StopReason = { readonly kind: 'requested' } | { readonly kind: 'failed'; readonly error: unknown };
const DEFAULT_CLOSE_TIMEOUT_MS = 35_000;
const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

const thisProcess: ProcessHost = {
  events: process,
  args: process.argv.slice(2),
  clock: systemClock,
  exit: (code) => process.exit(code),
  writeError: (text) => void process.stderr.write(text),
};

/**
 * Runs a process. `plan` reads the configuration and lists the parts. The parts start in order, and close in reverse
 * order at the first SIGTERM or SIGINT. Exit codes: 0 after one signal or `stop`, 143 (SIGTERM) or 130 (SIGINT) at once
 * after a second signal, 2 for wrong usage, and 1 for other failures.
 */
export async function runProcess(
  name: string,
  plan: (control: ProcessControl) => ProcessPlan | Promise<ProcessPlan>,
  host: ProcessHost = thisProcess,
): Promise<void> {
  const lifecycle = new ProcessLifecycle(name, host);
  try {
    await lifecycle.run(plan);
  } finally {
    lifecycle.removeListeners();
  }
}

class ProcessLifecycle {
  readonly #name: string;
  readonly #host: ProcessHost;
  readonly #stopping = new AbortController();
  readonly #stopReason = Promise.withResolvers<StopReason>();
  readonly #listeners: (readonly [event: string, listener: (value: unknown) => void])[];
  #hasExited = false;
  #log: Logger | undefined;
  #deadline: Timer | undefined;
  #closeTimeoutMs = DEFAULT_CLOSE_TIMEOUT_MS;

  constructor(name: string, host: ProcessHost) {
    this.#name = name;
    this.#host = host;
    this.#listeners = [
      ['SIGTERM', () => this.#handleSignal('SIGTERM')],
      ['SIGINT', () => this.#handleSignal('SIGINT')],
      // Without a listener, Node.js would open its inspector, through which local users could run code in this process.
      ['SIGUSR1', () => {}],
      ['uncaughtException', (error) => this.#crash(error)],
      ['unhandledRejection', (error) => this.#crash(error)],
    ];
    for (const [event, listener] of this.#listeners) host.events.on(event, listener);
  }

  async run(plan: (control: ProcessControl) => ProcessPlan | Promise<ProcessPlan>): Promise<void> {
    try {
      rejectArguments(this.#host.args ?? []);
      const {
        log,
        parts,
        closeTimeoutMs = DEFAULT_CLOSE_TIMEOUT_MS,
      } = await plan({
        stop: () => this.#beginStop({ kind: 'requested' }),
        fail: (error) => this.#beginStop({ kind: 'failed', error }),
      });
      this.#log = log;
      this.#closeTimeoutMs = closeTimeoutMs;
      const running = await startParts(parts, { log, signal: this.#stopping.signal });
      log.info('started');
      const reason = await this.#stopReason.promise;
      await running.close();
      if (reason.kind === 'failed') throw reason.error;
      log.info('closed');
      this.#exit(0);
    } catch (error) {
      await this.#exitAfterError(error);
    }
  }

  removeListeners(): void {
    this.#deadline?.cancel();
    for (const [event, listener] of this.#listeners) this.#host.events.off(event, listener);
  }

  #handleSignal(signal: keyof typeof SIGNAL_EXIT_CODES): void {
    if (this.#stopping.signal.aborted) {
      this.#exit(SIGNAL_EXIT_CODES[signal]);
    } else {
      this.#log?.info({ signal }, 'closing');
      this.#beginStop({ kind: 'requested' });
    }
  }

  #beginStop(reason: StopReason): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopReason.resolve(reason);
    this.#stopping.abort();
    this.#deadline = this.#host.clock.setTimeout(() => {
      this.#printError(`failed to close within ${this.#closeTimeoutMs} ms; exiting`);
      this.#exit(1);
    }, this.#closeTimeoutMs);
  }

  /**
   * Exits after an error of the plan or of a part, or after `fail`. An abort error after `stop` or a signal does not
   * count as a failure.
   */
  async #exitAfterError(error: unknown): Promise<void> {
    const isStopped = this.#stopping.signal.aborted;
    const reason = isStopped ? await this.#stopReason.promise : undefined;
    if (reason?.kind === 'requested' && isAbort(error, this.#stopping.signal)) return this.#exit(0);
    const { code, message } = exitStatusFor(reason?.kind === 'failed' ? reason.error : error);
    this.#printError(message);
    this.#exit(code);
  }

  /**
   * Exits at once after a bug. Does not close the parts, because the state of the process may be wrong and closing
   * could do harm.
   */
  #crash(error: unknown): void {
    if (this.#log !== undefined) this.#log.fatal({ err: error }, 'uncaught error');
    else this.#printError(error instanceof Error ? (error.stack ?? error.message) : String(error));
    this.#exit(1);
  }

  #printError(message: string): void {
    this.#host.writeError(`${this.#name}: ${message}\n`);
  }

  #exit(code: number): void {
    if (this.#hasExited) return;
    this.#hasExited = true;
    this.#host.exit(code);
  }
}

/** Throws if there are arguments, because a user would believe that an ignored flag works. */
function rejectArguments(args: readonly string[]): void {
  if (args.length === 0) return;
  throw new UsageError(
    `unexpected arguments "${args.join(' ')}"; use environment variables instead (see docs/settings.md)`,
  );
}
