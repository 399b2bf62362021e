import { backoffMs } from './backoff.ts';
import type { Clock, Timer } from './clock.ts';
import { isAbort } from './errors.ts';

export interface LoopOptions {
  /** Reads the state of the world and acts on it; what triggered it does not matter. Must not await the loop's own `close`. */
  run(signal: AbortSignal): Promise<void> | void;
  /** From the end of a run to the start of the next, at least. */
  readonly gapMs: number;
  /** From the start of a run to the start of one that nobody asked for; `Infinity`: never. */
  readonly resyncMs: number;
  /** Shortest and longest wait after a failed run. */
  readonly retryMs: readonly [min: number, max: number];
  readonly clock: Clock;
  onError(error: unknown, next: { readonly failures: number; readonly retryInMs: number }): void;
  readonly random?: () => number;
}

export interface Loop {
  /** Something may have changed. Nothing runs before the first call. */
  trigger(): void;
  /** Resolves once every trigger so far has been answered by a run that succeeded, or the loop is closed. */
  idle(): Promise<void>;
  /** Aborts the signal of a run under way, waits for its end, and lets no other start. */
  close(): Promise<void>;
}

/**
 * Runs `run` after triggers, never twice at once; triggers that arrive before a run starts merge into it, those that arrive while it
 * runs cause one more. A failed run is retried with exponential backoff. A trigger during that backoff brings the retry forward, but
 * not nearer than the shortest wait after the failure: so the event "the peer is back" does not wait out 30 s, and a storm of events
 * costs a peer that is down one attempt per shortest wait.
 */
export function createLoop(options: LoopOptions): Loop {
  return new ControlLoop(options);
}

class ControlLoop implements Loop {
  readonly #options: LoopOptions;
  readonly #closing = new AbortController();
  readonly #idleWaiters: (() => void)[] = [];
  #triggered = false;
  #isRunning = false;
  /** The run under way, or the last one. */
  #run: Promise<void> | undefined;
  #timer: Timer | undefined;
  #startedAt: number | undefined;
  #endedAt: number | undefined;
  #failures = 0;
  #retryInMs = 0;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  trigger(): void {
    if (this.#triggered || this.#closing.signal.aborted) return;
    this.#triggered = true;
    this.#schedule();
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
      this.#resolveIdleWaiters();
    });
  }

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
    return this.#triggered ? afterGap : Math.max(afterGap, this.#startedAt + resyncMs);
  }

  async #runOnce(): Promise<void> {
    const { run, clock } = this.#options;
    this.#isRunning = true; // Before `run`, which may itself trigger.
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
    // A run that obeys the signal fails by design.
    if (!isAbort(error, this.#closing.signal)) onError(error, { failures: this.#failures, retryInMs: this.#retryInMs });
  }

  #resolveIdleWaiters(): void {
    const isBusy = this.#isRunning || this.#triggered || this.#failures > 0;
    if (isBusy && !this.#closing.signal.aborted) return;
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
