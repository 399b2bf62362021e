// All checks that Services of this node ask for, each made once however many ask for it, and what they have shown.
import { answered, type CheckState, checkName, UNCHECKED } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { bad, badFor, type CheckAnswer } from './check-answer.ts';
import { CheckSchedule, type RunningCheck } from './check-schedule.ts';
import type { WantedCheck } from './wanted-check.ts';

/** Asks the endpoint. Rejects or answers soon after the signal is aborted, and has left nothing open by then. */
export type MakeCheck = (wanted: WantedCheck, signal: AbortSignal) => Promise<CheckAnswer>;

/** Its handshake takes the main thread so many times as long as all of a check by HTTP; else one tenant could keep it from all else. */
const COST_OVER_TLS = 5;

export interface CheckBookOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly make: MakeCheck;
  /** Whether a check is passed, or proven, is otherwise than before: for these askers. */
  readonly onTurn: (askers: Iterable<string>) => void;
}

export interface CheckCounts {
  readonly good: number;
  readonly bad: number;
  /** Begun later than asked for, because there are too many. */
  readonly stretched: number;
}

interface Kept {
  readonly wanted: WantedCheck;
  readonly askers: Set<string>;
  state: CheckState;
  /** The last bad answer. */
  why: string;
}

export class CheckBook {
  readonly #options: CheckBookOptions;
  readonly #schedule: CheckSchedule;
  readonly #kept = new Map<string, Kept>();
  readonly #asked = new Map<string, ReadonlySet<string>>();
  readonly #running = new Set<AbortController>();
  #good = 0;
  #bad = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: CheckBookOptions) {
    const { random, clock } = options;
    this.#options = options;
    this.#schedule = new CheckSchedule(random, clock.monotonic());
  }

  /** All that this asker wants from now on; what nobody wants any more is forgotten. */
  ask(asker: string, group: string, checks: Iterable<WantedCheck>): void {
    const before = this.#asked.get(asker);
    const now = new Set<string>();
    for (const wanted of checks) {
      now.add(wanted.key);
      if (!before?.has(wanted.key)) this.#join(asker, group, wanted);
    }
    for (const key of before ?? []) if (!now.has(key)) this.#leave(asker, key);
    if (now.size === 0) this.#asked.delete(asker);
    else this.#asked.set(asker, now);
    this.#pump();
  }

  /** Undefined: it passes; else why not. */
  failureOf(key: string): string | undefined {
    const kept = this.#kept.get(key);
    return kept === undefined || kept.state.passes ? undefined : kept.why;
  }

  /** It passes, and its last answer was good. */
  isProven(key: string): boolean {
    return this.#kept.get(key)?.state.isProven === true;
  }

  get counts(): CheckCounts {
    return { good: this.#good, bad: this.#bad, stretched: this.#schedule.stretched };
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const running of this.#running) running.abort();
  }

  #join(asker: string, group: string, wanted: WantedCheck): void {
    const { key, check } = wanted;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      kept.askers.add(asker);
      return;
    }
    this.#kept.set(key, { wanted, askers: new Set([asker]), state: UNCHECKED, why: '' });
    const cost = checkName(check) === 'https' ? COST_OVER_TLS : 1;
    this.#schedule.add({ key, group, intervalMs: check.intervalMs, cost }, this.#options.clock.monotonic());
  }

  #leave(asker: string, key: string): void {
    const kept = this.#kept.get(key);
    kept?.askers.delete(asker);
    if (kept?.askers.size !== 0) return;
    this.#kept.delete(key);
    this.#schedule.remove(key);
  }

  #pump(): void {
    const { clock } = this.#options;
    if (this.#isClosed) return;
    this.#timer?.cancel();
    for (let next = this.#next(); next !== undefined; next = this.#next()) void this.#run(next);
    const now = clock.monotonic();
    const wakeAt = this.#schedule.wakeAt(now);
    this.#timer = wakeAt === undefined ? undefined : clock.setTimeout(() => this.#pump(), wakeAt - now);
  }

  #next(): RunningCheck | undefined {
    return this.#schedule.begin(this.#options.clock.monotonic());
  }

  async #run(running: RunningCheck): Promise<void> {
    const kept = this.#kept.get(running.key);
    if (kept !== undefined) {
      const answer = await this.#answer(kept.wanted);
      // Nobody may want it by now, or somebody else anew.
      if (this.#kept.get(running.key) === kept && !this.#isClosed) this.#take(kept, answer);
    }
    this.#schedule.end(running, this.#options.clock.monotonic());
    this.#pump();
  }

  async #answer(wanted: WantedCheck): Promise<CheckAnswer> {
    const { clock, make } = this.#options;
    const stop = new AbortController();
    this.#running.add(stop);
    const { promise: late, resolve } = Promise.withResolvers<CheckAnswer>();
    const timer = clock.setTimeout(() => {
      resolve(bad(`no answer within ${wanted.check.timeoutMs} ms`));
      stop.abort();
    }, wanted.check.timeoutMs);
    try {
      return await Promise.race([make(wanted, stop.signal), late]);
    } catch (error) {
      return badFor(error);
    } finally {
      timer.cancel();
      this.#running.delete(stop);
    }
  }

  #take(kept: Kept, answer: CheckAnswer): void {
    const { state, wanted, askers } = kept;
    if (answer.kind === 'good') this.#good += 1;
    else {
      this.#bad += 1;
      kept.why = answer.why;
    }
    kept.state = answered(state, answer.kind === 'good', wanted.check);
    if (kept.state.passes !== state.passes || kept.state.isProven !== state.isProven) this.#options.onTurn(askers);
  }
}
