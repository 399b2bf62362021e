import { comparePriorities, type Priority, priorityOf } from './owned.ts';
import type { ServiceRecord } from './service-record.ts';
import type { PortAllocations } from './taken-ports.ts';

/** Who is asked before whom in one call: each by the rank that it had when it was first asked for in it. */
export class PriorityOrder {
  readonly #portAllocations: Pick<PortAllocations, 'listenersOf'>;
  readonly #priorities = new Map<ServiceRecord, Priority>();

  /** `first`: whose ranks are as they are now. */
  constructor(taken: Pick<PortAllocations, 'listenersOf'>, first: Iterable<ServiceRecord>) {
    this.#portAllocations = taken;
    for (const record of first) this.#priorityOf(record);
  }

  readonly compare = (a: ServiceRecord, b: ServiceRecord): number =>
    comparePriorities(this.#priorityOf(a), this.#priorityOf(b));

  sorted(records: Iterable<ServiceRecord>): ServiceRecord[] {
    return [...records].sort(this.compare);
  }

  #priorityOf(record: ServiceRecord): Priority {
    const { uid, service, allocation } = record;
    const known = this.#priorities.get(record);
    if (known !== undefined) return known;
    const rank = priorityOf(service, {
      hasPorts: this.#portAllocations.listenersOf(uid).length > 0,
      isHeld: allocation !== undefined,
    });
    this.#priorities.set(record, rank);
    return rank;
  }
}
