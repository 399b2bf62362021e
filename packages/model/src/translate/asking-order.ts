import { compareRanks, type Rank, rankOf } from './owned.ts';
import type { ServiceRecord } from './service-record.ts';
import type { TakenPorts } from './taken-ports.ts';

/** Who is asked before whom in one call: each by the rank that it had when it was first asked for in it. */
export class AskingOrder {
  readonly #taken: Pick<TakenPorts, 'listenersOf'>;
  readonly #ranks = new Map<ServiceRecord, Rank>();

  /** `first`: whose ranks are as they are now. */
  constructor(taken: Pick<TakenPorts, 'listenersOf'>, first: Iterable<ServiceRecord>) {
    this.#taken = taken;
    for (const record of first) this.#rankOf(record);
  }

  readonly compare = (a: ServiceRecord, b: ServiceRecord): number => compareRanks(this.#rankOf(a), this.#rankOf(b));

  sorted(records: Iterable<ServiceRecord>): ServiceRecord[] {
    return [...records].sort(this.compare);
  }

  #rankOf(record: ServiceRecord): Rank {
    const { uid, service, held } = record;
    const known = this.#ranks.get(record);
    if (known !== undefined) return known;
    const rank = rankOf(service, { hasPorts: this.#taken.listenersOf(uid).length > 0, isHeld: held !== undefined });
    this.#ranks.set(record, rank);
    return rank;
  }
}
