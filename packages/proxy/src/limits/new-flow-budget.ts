// Limits how many new UDP flows each tenant may open in one worker. Opening and closing a flow takes several system calls,
// and an attacker can forge the address of a client, so that each datagram opens a flow.

/** How many flows per second a tenant may open in one worker while the event loop is on time. */
const FLOWS_PER_SECOND = 4_000;
/** After a pause, a tenant may open as many flows at once as the rate allows in this time. */
const BURST_MS = 25;
/** If the turns of the event loop take longer than this, the event loop is late. */
const MAX_TURN_MS = 5;
/** The smallest share of the rate that a tenant keeps, however late the event loop is. */
const MIN_SHARE = 0.1;
/** The weight of the newest turn in the average duration of a turn. */
const NEWEST_TURN_WEIGHT = 1 / 8;

export interface NewFlowBudgetOptions {
  /** Returns milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** Calls its argument at the end of this turn of the event loop. */
  readonly atEndOfTurn?: (act: () => void) => void;
}

/** The token buckets of all tenants in one worker. The buckets get smaller while the event loop is late. */
export class NewFlowBudget {
  readonly #now: () => number;
  readonly #atEndOfTurn: (act: () => void) => void;
  /** For each tenant, the time until which the rate is used up, as in `takeWithinRate` of the model. */
  readonly #paidUntilByTenant = new Map<string, number>();
  /** When this turn opened or refused its first flow. */
  #turnStartedAt: number | undefined;
  #averageTurnMs = 0;

  constructor({ now, atEndOfTurn = setImmediate }: NewFlowBudgetOptions) {
    this.#now = now;
    this.#atEndOfTurn = atEndOfTurn;
  }

  /**
   * Takes one new flow of the tenant from the budget, or returns false if nothing is left. `limitPerSecond` is the
   * tenant's own limit of new connections, or Infinity: a limit that is higher than the budget replaces the budget.
   */
  tryTake(tenant: string, limitPerSecond: number): boolean {
    const now = this.#now();
    this.#measureTurn(now);
    const flowMs = 1_000 / flowsPerSecond(limitPerSecond, this.#averageTurnMs);
    const paidUntil = Math.max(this.#paidUntilByTenant.get(tenant) ?? 0, now - BURST_MS) + flowMs;
    if (paidUntil > now) return false;
    this.#paidUntilByTenant.set(tenant, paidUntil);
    return true;
  }

  /** Forgets the tenants whose buckets are full. To be called once a second. */
  tick(): void {
    const full = this.#now() - BURST_MS;
    for (const [tenant, paidUntil] of this.#paidUntilByTenant)
      if (paidUntil <= full) this.#paidUntilByTenant.delete(tenant);
  }

  /** Measures the rest of this turn. The waiting time before the turn must not count. */
  #measureTurn(now: number): void {
    if (this.#turnStartedAt !== undefined) return;
    this.#turnStartedAt = now;
    this.#atEndOfTurn(this.#onTurnEnded);
  }

  readonly #onTurnEnded = (): void => {
    const turnMs = this.#now() - (this.#turnStartedAt as number);
    this.#turnStartedAt = undefined;
    this.#averageTurnMs += (turnMs - this.#averageTurnMs) * NEWEST_TURN_WEIGHT;
  };
}

/** Returns how many flows per second a tenant may open if the turns of the event loop take `turnMs` on average. */
function flowsPerSecond(limitPerSecond: number, turnMs: number): number {
  const rate =
    limitPerSecond === Number.POSITIVE_INFINITY ? FLOWS_PER_SECOND : Math.max(FLOWS_PER_SECOND, limitPerSecond);
  return rate * Math.max(MIN_SHARE, Math.min(1, MAX_TURN_MS / turnMs));
}
