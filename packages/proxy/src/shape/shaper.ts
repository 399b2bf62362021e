// Bandwidth of one worker: the lanes of its Services, and one timer for all that waits. It runs only while something does.
import type { Budgets } from '../admit/admit.ts';
import type { Budget } from '../admit/budget.ts';
import type { Direction } from '../admit/limit-sheet.ts';
import { Lane } from './lane.ts';
import { Meter } from './meter.ts';

const TICK_MS = 10;

export type Lanes = { readonly [D in Direction]: Lane };
type Meters = { readonly [D in Direction]: Meter };

export class Shaper {
  readonly #now: () => bigint;
  readonly #lanes = new WeakMap<Budgets, Lanes>();
  readonly #meters = new WeakMap<Budget, Meters>();
  readonly #waitedFor = new Set<Meter>();
  #timer: NodeJS.Timeout | undefined;

  /** Nanoseconds, the same in all threads. */
  constructor(now: () => bigint = process.hrtime.bigint) {
    this.#now = now;
  }

  lanesFor(budgets: Budgets): Lanes {
    const known = this.#lanes.get(budgets);
    if (known !== undefined) return known;
    const service = this.#metersOf(budgets.service);
    const tenant = this.#metersOf(budgets.tenant);
    const now = this.#now;
    const lanes = {
      in: new Lane({ service: service.in, tenant: tenant.in, now }),
      out: new Lane({ service: service.out, tenant: tenant.out, now }),
    };
    this.#lanes.set(budgets, lanes);
    return lanes;
  }

  /** Gives turns to those that wait. */
  serve(): void {
    const now = this.#now();
    for (const meter of this.#waitedFor) {
      meter.serve(now);
      if (!meter.isWaitedFor) this.#waitedFor.delete(meter);
    }
    if (this.#waitedFor.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #metersOf(budget: Budget): Meters {
    const known = this.#meters.get(budget);
    if (known !== undefined) return known;
    const onWaiting = (meter: Meter): void => {
      this.#waitedFor.add(meter);
      this.#timer ??= setInterval(() => this.serve(), TICK_MS).unref();
    };
    const meters = {
      in: new Meter(budget, { direction: 'in', onWaiting }),
      out: new Meter(budget, { direction: 'out', onWaiting }),
    };
    this.#meters.set(budget, meters);
    return meters;
  }
}
