import type { Counters, Heartbeat } from '@weir/model/data-plane';
import { ACTIVE, outcomeColumn } from '../metering/counters.ts';
import { OUTCOMES, type Outcome } from '../metering/outcome.ts';
import { countersOf, type SlotRegistry } from '../metering/slot-registry.ts';
import type { WorkerSlotView } from '../supervisor/worker-slots.ts';

/** The state of a proxy as returned by /debug/listeners and by `view()`. */
export interface ProxySelfView extends Omit<Heartbeat, 'life'> {
  /** The number of the incarnation; null until the store has assigned the number. */
  readonly life: number | null;
  /** Why this proxy serves no traffic, if another proxy serves the node; otherwise null. */
  readonly conflict: string | null;
  readonly services: readonly ServiceCount[];
  /** One entry per worker slot. */
  readonly threads: readonly WorkerSlotView[];
}

export interface ServiceCount {
  readonly namespace: string;
  readonly name: string;
  readonly tenant: string;
  readonly active: number;
  readonly counters: Counters;
  readonly outcomes: Partial<Record<Outcome, number>>;
}

export function serviceCounts(slots: SlotRegistry): ServiceCount[] {
  return [...slots.totals()].map(({ owner, total }) => ({
    namespace: owner.namespace,
    name: owner.name,
    tenant: owner.tenant,
    active: total[ACTIVE] as number,
    counters: countersOf(total),
    outcomes: outcomeCounts(total),
  }));
}

/** Returns the number of connections for each outcome in a row of totals. Leaves out outcomes that did not occur. */
export function outcomeCounts(total: Float64Array): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const outcome of OUTCOMES) {
    const count = total[outcomeColumn(outcome)] as number;
    if (count > 0) counts[outcome] = count;
  }
  return counts;
}
