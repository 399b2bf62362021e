// Bandwidth of one worker: the lanes of its Services, and one timer for all that waits. It runs only while something does.
import type { Limiters } from '../admit/admit.ts';
import type { Limiter } from '../admit/budget.ts';
import type { Direction } from '../admit/limit-sheet.ts';
import { BandwidthLimiter } from './lane.ts';
import { BandwidthBucket } from './meter.ts';

const TICK_MS = 10;

export type BandwidthLimiters = { readonly [D in Direction]: BandwidthLimiter };
type BandwidthBuckets = { readonly [D in Direction]: BandwidthBucket };

export class Shaper {
  readonly #now: () => bigint;
  readonly #limiters = new WeakMap<Limiters, BandwidthLimiters>();
  readonly #buckets = new WeakMap<Limiter, BandwidthBuckets>();
  readonly #bucketsWithWaiters = new Set<BandwidthBucket>();
  #timer: NodeJS.Timeout | undefined;

  /** Nanoseconds, the same in all threads. */
  constructor(now: () => bigint = process.hrtime.bigint) {
    this.#now = now;
  }

  limitersFor(budgets: Limiters): BandwidthLimiters {
    const known = this.#limiters.get(budgets);
    if (known !== undefined) return known;
    const service = this.#bucketsOf(budgets.service);
    const tenant = this.#bucketsOf(budgets.tenant);
    const now = this.#now;
    const lanes = {
      in: new BandwidthLimiter({ service: service.in, tenant: tenant.in, now }),
      out: new BandwidthLimiter({ service: service.out, tenant: tenant.out, now }),
    };
    this.#limiters.set(budgets, lanes);
    return lanes;
  }

  /** Gives turns to those that wait. */
  serve(): void {
    const now = this.#now();
    for (const meter of this.#bucketsWithWaiters) {
      meter.serve(now);
      if (!meter.hasWaiters) this.#bucketsWithWaiters.delete(meter);
    }
    if (this.#bucketsWithWaiters.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #bucketsOf(budget: Limiter): BandwidthBuckets {
    const known = this.#buckets.get(budget);
    if (known !== undefined) return known;
    const onWaiting = (meter: BandwidthBucket): void => {
      this.#bucketsWithWaiters.add(meter);
      this.#timer ??= setInterval(() => this.serve(), TICK_MS).unref();
    };
    const meters = {
      in: new BandwidthBucket(budget, { direction: 'in', onWaiting }),
      out: new BandwidthBucket(budget, { direction: 'out', onWaiting }),
    };
    this.#buckets.set(budget, meters);
    return meters;
  }
}
