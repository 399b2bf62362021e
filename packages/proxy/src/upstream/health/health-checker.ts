import { once } from 'node:events';
import { type CheckState, INITIAL_CHECK_STATE, recordCheckResult } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import {
  closeCheckSocket,
  connectForCheck,
  failed,
  failedWith,
  type HealthCheckResult,
  PASSED,
  type WantedCheck,
} from './check.ts';
import { CheckSchedule, type RunningCheck } from './check-schedule.ts';

// Runs all checks that Services of this node ask for, and keeps the results. If several ports ask for equal checks,
// only one check runs.

/** Checks an endpoint. If the signal is aborted, closes the connection and settles soon. */
export type RunCheck = (wanted: WantedCheck, signal: AbortSignal) => Promise<HealthCheckResult>;
/**
 * The cost of a check over TLS; any other check costs 1. A TLS handshake occupies the main thread five times as long as
 * a whole check over plain HTTP.
 */
const TLS_CHECK_COST = 5;

export interface HealthCheckerOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly runCheck: RunCheck;
  /** Called when `failureOf` or `isProven` has changed for a check of these subscribers. */
  readonly onResultChange: (subscribers: Iterable<string>) => void;
}

export interface CheckCounts {
  readonly good: number;
  readonly bad: number;
  /** The number of checks that began late because there were too many checks. */
  readonly late: number;
}

interface TrackedCheck {
  readonly wanted: WantedCheck;
  readonly subscribers: Set<string>;
  state: CheckState;
  /** Why the check failed the last time. */
  lastFailure: string;
}

export class HealthChecker {
  readonly #options: HealthCheckerOptions;
  readonly #schedule: CheckSchedule;
  readonly #checks = new Map<string, TrackedCheck>();
  readonly #keysBySubscriber = new Map<string, ReadonlySet<string>>();
  readonly #running = new Set<AbortController>();
  #good = 0;
  #bad = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: HealthCheckerOptions) {
    const { random, clock } = options;
    this.#options = options;
    this.#schedule = new CheckSchedule(random, clock.monotonic());
  }

  /** Replaces the checks of this subscriber. A check ends when its last subscriber is removed. */
  subscribe(subscriber: string, group: string, checks: Iterable<WantedCheck>): void {
    const before = this.#keysBySubscriber.get(subscriber);
    const now = new Set<string>();
    for (const wanted of checks) {
      now.add(wanted.key);
      if (!before?.has(wanted.key)) this.#addSubscriber(subscriber, group, wanted);
    }
    for (const key of before ?? []) if (!now.has(key)) this.#removeSubscriber(subscriber, key);
    if (now.size === 0) this.#keysBySubscriber.delete(subscriber);
    else this.#keysBySubscriber.set(subscriber, now);
    this.#runDue();
  }

  /** Returns why the check fails, or undefined if it passes. */
  failureOf(key: string): string | undefined {
    const tracked = this.#checks.get(key);
    return tracked === undefined || tracked.state.passes ? undefined : tracked.lastFailure;
  }

  /**
   * Whether the check passes and its last result was good. False for a new check, because a new check passes although
   * it has no result yet.
   */
  isProven(key: string): boolean {
    return this.#checks.get(key)?.state.isConfirmed === true;
  }

  get counts(): CheckCounts {
    return { good: this.#good, bad: this.#bad, late: this.#schedule.late };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const running of this.#running) running.abort();
  }

  #addSubscriber(subscriber: string, group: string, wanted: WantedCheck): void {
    const { key, check, overTls } = wanted;
    const tracked = this.#checks.get(key);
    if (tracked !== undefined) {
      tracked.subscribers.add(subscriber);
      return;
    }
    this.#checks.set(key, { wanted, subscribers: new Set([subscriber]), state: INITIAL_CHECK_STATE, lastFailure: '' });
    const cost = overTls ? TLS_CHECK_COST : 1;
    this.#schedule.add({ key, group, intervalMs: check.intervalMs, cost }, this.#options.clock.monotonic());
  }

  #removeSubscriber(subscriber: string, key: string): void {
    const tracked = this.#checks.get(key);
    tracked?.subscribers.delete(subscriber);
    if (tracked?.subscribers.size !== 0) return;
    this.#checks.delete(key);
    this.#schedule.remove(key);
  }

  #runDue(): void {
    const { clock } = this.#options;
    if (this.#isClosed) return;
    this.#timer?.cancel();
    for (let next = this.#next(); next !== undefined; next = this.#next()) void this.#run(next);
    const now = clock.monotonic();
    const wakeAt = this.#schedule.wakeAt(now);
    this.#timer = wakeAt === undefined ? undefined : clock.setTimeout(() => this.#runDue(), wakeAt - now);
  }

  #next(): RunningCheck | undefined {
    return this.#schedule.begin(this.#options.clock.monotonic());
  }

  async #run(running: RunningCheck): Promise<void> {
    const tracked = this.#checks.get(running.key);
    if (tracked !== undefined) {
      const result = await this.#runWithTimeout(tracked.wanted);
      // Ignores the result if the check was removed, or removed and added again, while it ran.
      if (this.#checks.get(running.key) === tracked && !this.#isClosed) this.#recordResult(tracked, result);
    }
    this.#schedule.end(running, this.#options.clock.monotonic());
    this.#runDue();
  }

  async #runWithTimeout(wanted: WantedCheck): Promise<HealthCheckResult> {
    const { clock, runCheck } = this.#options;
    const stop = new AbortController();
    this.#running.add(stop);
    const { promise: late, resolve } = Promise.withResolvers<HealthCheckResult>();
    const timer = clock.setTimeout(() => {
      resolve(failed(`no answer within ${wanted.check.timeoutMs} ms`));
      stop.abort();
    }, wanted.check.timeoutMs);
    try {
      return await Promise.race([runCheck(wanted, stop.signal), late]);
    } catch (error) {
      return failedWith(error);
    } finally {
      timer.cancel();
      this.#running.delete(stop);
    }
  }

  #recordResult(tracked: TrackedCheck, result: HealthCheckResult): void {
    const { state, wanted, subscribers } = tracked;
    if (result.kind === 'good') this.#good += 1;
    else {
      this.#bad += 1;
      tracked.lastFailure = result.why;
    }
    tracked.state = recordCheckResult(state, result.kind === 'good', wanted.check);
    if (tracked.state.passes !== state.passes || tracked.state.isConfirmed !== state.isConfirmed)
      this.#options.onResultChange(subscribers);
  }
}

export const runHealthCheck: RunCheck = (wanted, signal) => {
  const { check } = wanted;
  if (check.kind === 'http') return checkHttp(wanted, check, signal);
  return check.grpcService === undefined ? checkTcp(wanted, signal) : checkGrpc(wanted, check.grpcService, signal);
};

/**
 * Runs an HTTP check. The HTTP client is loaded on first use, because the HTTP client makes up a tenth of all modules
 * of a proxy, and most fleets have no HTTP checks.
 */
const checkHttp: typeof import('./http-check.ts')['checkHttp'] = async (...wanted) => {
  const loaded = await import('./http-check.ts');
  return loaded.checkHttp(...wanted);
};

/** Runs a gRPC check. HTTP/2 is loaded on first use, because without gRPC checks the main thread does not need it. */
const checkGrpc: typeof import('./grpc-check.ts')['checkGrpc'] = async (...wanted) => {
  const loaded = await import('./grpc-check.ts');
  return loaded.checkGrpc(...wanted);
};

/** Passes if the endpoint accepts a connection. Rejects if the connection fails or the signal is aborted. */
export async function checkTcp(wanted: WantedCheck, signal: AbortSignal): Promise<HealthCheckResult> {
  const socket = connectForCheck(wanted);
  try {
    await once(socket, 'connect', { signal });
    return PASSED;
  } finally {
    closeCheckSocket(socket);
  }
}
