import type { HistogramSample, Sample } from '@weir/runtime';
import type { StoreErrorCode } from './errors.ts';

/** The upper bounds of the buckets of the histogram. A call fails after 2 s. */
export const CALL_BUCKETS_SECONDS: readonly number[] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2];

const ERROR_CODES = ['AWAY', 'REFUSED'] as const satisfies readonly StoreErrorCode[];

/** Counts and times the calls of one process to Redis. Calls that block until something changes are not included. */
export class CallStatistics {
  readonly #durations = new Map<string, { readonly counts: number[]; sum: number }>();
  readonly #errors = new Map<StoreErrorCode, number>(ERROR_CODES.map((code) => [code, 0]));
  #reconnects = 0;

  /**
   * Records a call that took `ms` milliseconds until its reply or failure. Calls with the same name are measured together. `error` is the
   * code of the failure.
   */
  record(call: string, ms: number, error?: StoreErrorCode): void {
    let known = this.#durations.get(call);
    if (known === undefined) {
      known = { counts: new Array(CALL_BUCKETS_SECONDS.length + 1).fill(0), sum: 0 };
      this.#durations.set(call, known);
    }
    const seconds = ms / 1000;
    const bucket = CALL_BUCKETS_SECONDS.findIndex((bound) => seconds <= bound);
    const index = bucket === -1 ? CALL_BUCKETS_SECONDS.length : bucket;
    known.counts[index] = (known.counts[index] ?? 0) + 1;
    known.sum += seconds;
    if (error !== undefined) this.#errors.set(error, (this.#errors.get(error) ?? 0) + 1);
  }

  recordReconnect(): void {
    this.#reconnects += 1;
  }

  /** How often the process reached Redis again after it had lost Redis. */
  get reconnects(): number {
    return this.#reconnects;
  }

  *durations(): Iterable<HistogramSample<'call'>> {
    for (const [call, { counts, sum }] of this.#durations) yield { labels: { call }, counts, sum };
  }

  *errors(): Iterable<Sample<'code'>> {
    for (const [code, value] of this.#errors) yield { labels: { code }, value };
  }
}
