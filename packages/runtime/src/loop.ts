import { backoffMs } from './backoff.ts';
import type { Clock, Timer } from './clock.ts';
import { isAbort } from './errors.ts';

export interface LoopOptions {
  /** Reads the current state and acts on it. Gets no information about what triggered the run. Must not await the loop's own `close`. */
  run(signal: AbortSignal): Promise<void> | void;
  /** The minimum time from the end of a run to the start of the next run. */
  readonly gapMs: number;
  /**
   * Without a trigger, the next run starts this long after the start of the last run. `Infinity` disables such runs. A function is called
   * after each run.
   */
  readonly resyncMs: number | (() => number);
  /** The minimum and maximum wait after a failed run. */
  readonly retryMs: readonly [min: number, max: number];
  readonly clock: Clock;
  onError(error: unknown, next: { readonly failures: number; readonly retryInMs: number }): void;
  readonly random?: () => number;
}

/**
 * Calls `run` after triggers, one run at a time. Triggers before the start of a run merge into that run; triggers
 * during a run cause one more run. A failed run is retried with exponential backoff. A trigger during the backoff
 * shortens the wait to the minimum. So a trigger such as "the peer is back" does not wait for the maximum, and many
 * triggers cause only one attempt per minimum wait.
 */
export class Loop {
  readonly #options: LoopOptions;
  readonly #closing = new AbortController();
  readonly #idleWaiters: (() => void)[] = [];
  #triggered = false;
  #isRunning = false;
  /** The current run, or the last run. */
  #run: Promise<void> | undefined;
  #timer: Timer | undefined;
  #startedAt: number | undefined;
  #endedAt: number | undefined;
  #failures = 0;
  #retryInMs = 0;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Requests a run. Nothing runs before the first call. */
  trigger(): void {
    if (this.#triggered || this.#closing.signal.aborted) return;
    this.#triggered = true;
    this.#schedule();
  }

  /** Resolves when a run has succeeded after the last trigger, or when the loop is closed. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
      this.#resolveIdleWaiters();
    });
  }

  /** Aborts the signal of the current run, and resolves when that run has ended. No other run starts. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#timer?.cancel();
    await this.#run;
    this.#resolveIdleWaiters();
  }

  #schedule(): void {
    if (this.#isRunning || this.#closing.signal.aborted) return;
    this.#timer?.cancel();
    const dueAt = this.#nextRunAt();
    if (!Number.isFinite(dueAt)) return;
    const { clock } = this.#options;
    this.#timer = clock.setTimeout(() => {
      this.#run = this.#runOnce();
    }, dueAt - clock.monotonic());
  }

  #nextRunAt(): number {
    const { gapMs, resyncMs, retryMs, clock } = this.#options;
    if (this.#startedAt === undefined || this.#endedAt === undefined) return clock.monotonic();
    if (this.#failures > 0)
      return this.#endedAt + (this.#triggered ? Math.min(retryMs[0], this.#retryInMs) : this.#retryInMs);
    const afterGap = this.#endedAt + gapMs;
    if (this.#triggered) return afterGap;
    return Math.max(afterGap, this.#startedAt + (typeof resyncMs === 'number' ? resyncMs : resyncMs()));
  }

  async #runOnce(): Promise<void> {
    const { run, clock } = this.#options;
    this.#isRunning = true; // Set before `run`, because `run` may call `trigger`.
    this.#triggered = false;
    this.#startedAt = clock.monotonic();
    try {
      await run(this.#closing.signal);
      this.#failures = 0;
    } catch (error) {
      this.#recordFailure(error);
    } finally {
      this.#endedAt = clock.monotonic();
      this.#isRunning = false;
      this.#schedule();
      this.#resolveIdleWaiters();
    }
  }

  #recordFailure(error: unknown): void {
    const { retryMs, random = Math.random, onError } = this.#options;
    this.#failures += 1;
    this.#retryInMs = backoffMs(this.#failures, { minMs: retryMs[0], maxMs: retryMs[1], random });
    // Does not report the error of a run that `close` has aborted.
    if (!isAbort(error, this.#closing.signal)) onError(error, { failures: this.#failures, retryInMs: this.#retryInMs });
  }

  #resolveIdleWaiters(): void {
    const isBusy = this.#isRunning || this.#triggered || this.#failures > 0;
    if (isBusy && !this.#closing.signal.aborted) return;
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
