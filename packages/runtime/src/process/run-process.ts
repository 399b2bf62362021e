import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import { isAbort, UsageError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { exitStatusFor } from './exit-status.ts';
import { type Part, startParts } from './start-parts.ts';

export interface ProcessPlan {
  readonly log: Logger;
  readonly parts: readonly Part[];
  /** How long closing may take before the process ends anyway (exit code 1); default 35 s: a drain of 30 s, and some air. */
  readonly closeTimeoutMs?: number;
}

/** What a plan can hand to its parts. */
export interface ProcessControl {
  /** Ends the process in good order, as SIGTERM does. */
  stop(): void;
  /** A part cannot go on: the others are closed in good order, and the exit code says that it was no wish. */
  fail(error: unknown): void;
}

/** The world of a process, replaced in tests. */
export interface ProcessHost {
  /** Emits SIGTERM, SIGINT, uncaughtException and unhandledRejection. */
  readonly events: EventEmitter;
  readonly clock: Clock;
  /** What stood behind the name of the program; absent: nothing. */
  readonly args?: readonly string[];
  exit(code: number): void;
  writeError(text: string): void;
}

type StopReason = { readonly kind: 'asked' } | { readonly kind: 'failed'; readonly error: unknown };
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
 * The life of a process: `plan` reads the configuration and lists the parts; they are started, and closed in reverse order at the
 * first SIGTERM or SIGINT. A second signal ends the process at once. Exit codes: 0 asked to end, 2 wrong usage, 1 anything else.
 */
export async function runProcess(
  name: string,
  plan: (control: ProcessControl) => ProcessPlan | Promise<ProcessPlan>,
  host: ProcessHost = thisProcess,
): Promise<void> {
  const life = new ProcessLifecycle(name, host);
  try {
    await life.run(plan);
  } finally {
    life.removeListeners();
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
        stop: () => this.#beginStop({ kind: 'asked' }),
        fail: (error) => this.#beginStop({ kind: 'failed', error }),
      });
      this.#log = log;
      this.#closeTimeoutMs = closeTimeoutMs;
      const running = await startParts(parts, { log, signal: this.#stopping.signal });
      log.info('started');
      const ending = await this.#stopReason.promise;
      await running.close();
      if (ending.kind === 'failed') throw ending.error;
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
      this.#beginStop({ kind: 'asked' });
    }
  }

  #beginStop(ending: StopReason): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopReason.resolve(ending);
    this.#stopping.abort();
    this.#deadline = this.#host.clock.setTimeout(() => {
      this.#printError(`still closing after ${this.#closeTimeoutMs} ms, ending anyway`);
      this.#exit(1);
    }, this.#closeTimeoutMs);
  }

  /** Starting or closing threw. When it threw because the process was asked to end, that is no failure. */
  async #exitAfterError(error: unknown): Promise<void> {
    const isStopped = this.#stopping.signal.aborted;
    const ending = isStopped ? await this.#stopReason.promise : undefined;
    if (ending?.kind === 'asked' && isAbort(error, this.#stopping.signal)) return this.#exit(0);
    const { code, message } = exitStatusFor(ending?.kind === 'failed' ? ending.error : error);
    this.#printError(message);
    this.#exit(code);
  }

  /** A bug: what the process believes may be wrong, so nothing is closed in good order. */
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

/** A mistyped flag that is passed over would leave somebody believing that it works. */
function rejectArguments(args: readonly string[]): void {
  if (args.length === 0) return;
  throw new UsageError(
    `${args.join(' ')}: arguments are not taken; the settings are environment variables, which docs/operating.md lists`,
  );
}

/** The version of the package whose `src/` or `dist/src/` a module lies in itself, not deeper; `moduleUrl` is its `import.meta.url`. */
export function packageVersion(moduleUrl: string): string {
  const up = moduleUrl.includes('/dist/') ? '../..' : '..';
  const text = readFileSync(new URL(`${up}/package.json`, moduleUrl), 'utf8');
  return String(JSON.parse(text).version);
}
