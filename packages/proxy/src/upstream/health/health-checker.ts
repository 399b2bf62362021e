import { once } from 'node:events';
import { type CheckState, healthCheckName, INITIAL_CHECK_STATE, recordCheckResult } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import {
  type CheckResult,
  closeCheckSocket,
  connectForCheck,
  failed,
  failedWith,
  PASSED,
  type WantedCheck,
} from './check.ts';
import { CheckSchedule, type RunningCheck } from './check-schedule.ts';

// All checks that Services of this node ask for, each made once however many ask for it, and what they have shown.

/** Asks the endpoint. Rejects or answers soon after the signal is aborted, and has left nothing open by then. */
export type RunCheck = (wanted: WantedCheck, signal: AbortSignal) => Promise<CheckResult>;
/** Its handshake takes the main thread so many times as long as all of a check by HTTP; else one tenant could keep it from all else. */
const TLS_CHECK_COST = 5;

export interface HealthCheckerOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly runCheck: RunCheck;
  /** Whether a check is passed, or proven, is otherwise than before: for these askers. */
  readonly onResultChange: (askers: Iterable<string>) => void;
}

export interface CheckCounts {
  readonly good: number;
  readonly bad: number;
  /** Begun later than asked for, because there are too many. */
  readonly stretched: number;
}

interface TrackedCheck {
  readonly wanted: WantedCheck;
  readonly subscribers: Set<string>;
  state: CheckState;
  /** The last bad answer. */
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

  /** All that this asker wants from now on; what nobody wants any more is forgotten. */
  subscribe(asker: string, group: string, checks: Iterable<WantedCheck>): void {
    const before = this.#keysBySubscriber.get(asker);
    const now = new Set<string>();
    for (const wanted of checks) {
      now.add(wanted.key);
      if (!before?.has(wanted.key)) this.#addSubscriber(asker, group, wanted);
    }
    for (const key of before ?? []) if (!now.has(key)) this.#removeSubscriber(asker, key);
    if (now.size === 0) this.#keysBySubscriber.delete(asker);
    else this.#keysBySubscriber.set(asker, now);
    this.#runDue();
  }

  /** Undefined: it passes; else why not. */
  failureOf(key: string): string | undefined {
    const kept = this.#checks.get(key);
    return kept === undefined || kept.state.passes ? undefined : kept.lastFailure;
  }

  /** It passes, and its last answer was good. */
  isProven(key: string): boolean {
    return this.#checks.get(key)?.state.isConfirmed === true;
  }

  get counts(): CheckCounts {
    return { good: this.#good, bad: this.#bad, stretched: this.#schedule.stretched };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const running of this.#running) running.abort();
  }

  #addSubscriber(asker: string, group: string, wanted: WantedCheck): void {
    const { key, check } = wanted;
    const kept = this.#checks.get(key);
    if (kept !== undefined) {
      kept.subscribers.add(asker);
      return;
    }
    this.#checks.set(key, { wanted, subscribers: new Set([asker]), state: INITIAL_CHECK_STATE, lastFailure: '' });
    const cost = healthCheckName(check) === 'https' ? TLS_CHECK_COST : 1;
    this.#schedule.add({ key, group, intervalMs: check.intervalMs, cost }, this.#options.clock.monotonic());
  }

  #removeSubscriber(asker: string, key: string): void {
    const kept = this.#checks.get(key);
    kept?.subscribers.delete(asker);
    if (kept?.subscribers.size !== 0) return;
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
    const kept = this.#checks.get(running.key);
    if (kept !== undefined) {
      const answer = await this.#runWithTimeout(kept.wanted);
      // Nobody may want it by now, or somebody else anew.
      if (this.#checks.get(running.key) === kept && !this.#isClosed) this.#recordResult(kept, answer);
    }
    this.#schedule.end(running, this.#options.clock.monotonic());
    this.#runDue();
  }

  async #runWithTimeout(wanted: WantedCheck): Promise<CheckResult> {
    const { clock, runCheck } = this.#options;
    const stop = new AbortController();
    this.#running.add(stop);
    const { promise: late, resolve } = Promise.withResolvers<CheckResult>();
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

  #recordResult(kept: TrackedCheck, answer: CheckResult): void {
    const { state, wanted, subscribers } = kept;
    if (answer.kind === 'good') this.#good += 1;
    else {
      this.#bad += 1;
      kept.lastFailure = answer.why;
    }
    kept.state = recordCheckResult(state, answer.kind === 'good', wanted.check);
    if (kept.state.passes !== state.passes || kept.state.isConfirmed !== state.isConfirmed)
      this.#options.onResultChange(subscribers);
  }
}

/** As the Service asks for it. */
export const runHealthCheck: RunCheck = (wanted, signal) => {
  const { check } = wanted;
  return check.kind === 'http' ? checkHttp(wanted, check, signal) : checkTcp(wanted, signal);
};

/** Its client is a tenth of all that a proxy loads, and most fleets have no such check. */
const checkHttp: typeof import('./http-check.ts')['checkHttp'] = async (...wanted) => {
  const loaded = await import('./http-check.ts');
  return loaded.checkHttp(...wanted);
};

/** Good: it takes a connection. Rejects when it does not, or is stopped. */
export async function checkTcp(wanted: WantedCheck, signal: AbortSignal): Promise<CheckResult> {
  const socket = connectForCheck(wanted);
  try {
    await once(socket, 'connect', { signal });
    return PASSED;
  } finally {
    closeCheckSocket(socket);
  }
}
