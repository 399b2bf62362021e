import { comparePriorities, type Priority, priorityOf } from '../owned-services.ts';
import type { ServiceRecord } from '../service-registry.ts';
import type { PortAllocations } from './port-allocations.ts';
import type { QuotaWaitGroup } from './wait-list.ts';

export interface RoundRules {
  /** Whose rank is lower comes first. */
  readonly compare: (a: ServiceRecord, b: ServiceRecord) => number;
  /** Whether a group would be told now what it was told. */
  readonly isQuotaUnchanged: (group: QuotaWaitGroup) => boolean;
  /** Whether a Service that found its ports taken would find the same now. */
  readonly isStillRefused: (record: ServiceRecord) => boolean;
}

interface Candidate {
  readonly record: ServiceRecord;
  /** Why it is asked, if that still holds by then: its group would be told something else, or it would find its ports otherwise. */
  readonly cause: QuotaWaitGroup | 'ports' | 'must';
}

/**
 * One round, in which each is asked at most once, by rank. Of a group, in which thousands may wait for one place, only who is first is
 * looked at, and the next when that one has had its turn: mostly the place is gone by then.
 */
export class AllocationRound {
  readonly #rules: RoundRules;
  /** In order: mostly it is all of them. */
  readonly #dirty: readonly ServiceRecord[];
  #nextIndex = 0;
  /** Who is added to them. */
  readonly #queue: PriorityQueue<Candidate>;
  readonly #considered = new Set<ServiceRecord>();
  /** Of the groups that were looked at, those of its members who come after. */
  readonly #membersLeft = new Map<QuotaWaitGroup, PriorityQueue<ServiceRecord>>();
  /** Of which one is in the queue, or who is in it for its ports. */
  readonly #queued = new Set<QuotaWaitGroup | ServiceRecord>();
  #lastConsidered: ServiceRecord | undefined;

  /** `first`: by rank. */
  constructor(rules: RoundRules, first: readonly ServiceRecord[]) {
    this.#rules = rules;
    this.#dirty = first;
    this.#queue = new PriorityQueue((a, b) => rules.compare(a.record, b.record));
  }

  /** Some of its ports were given up or taken. Whose turn was over is left to the next round. */
  addWaiter(record: ServiceRecord): void {
    if (this.#queued.has(record) || !this.#isPending(record)) return;
    this.#queued.add(record);
    this.#queue.push({ record, cause: 'ports' });
  }

  addGroup(group: QuotaWaitGroup): void {
    if (this.#queued.has(group)) return;
    const rest = this.#membersLeft.get(group) ?? new PriorityQueue(this.#rules.compare, group.members);
    this.#membersLeft.set(group, rest);
    this.#queueNext(group, rest);
  }

  /** Undefined: the round is over. */
  next(): ServiceRecord | undefined {
    for (let turn = this.#takeCandidate(); turn !== undefined; turn = this.#takeCandidate()) {
      if (this.#isDue(turn) && !this.#considered.has(turn.record)) {
        this.#considered.add(turn.record);
        this.#lastConsidered = turn.record;
        return turn.record;
      }
    }
    return undefined;
  }

  #takeCandidate(): Candidate | undefined {
    const record = this.#dirty[this.#nextIndex];
    const { head: added } = this.#queue;
    if (record === undefined || (added !== undefined && this.#rules.compare(added.record, record) < 0)) {
      return this.#queue.pop();
    }
    this.#nextIndex += 1;
    return { record, cause: 'must' };
  }

  #isDue({ record, cause }: Candidate): boolean {
    if (cause === 'must') return true;
    if (cause === 'ports') {
      this.#queued.delete(record);
      return !this.#considered.has(record) && !this.#rules.isStillRefused(record);
    }
    return this.#isGroupDue(record, cause);
  }

  #isGroupDue(record: ServiceRecord, group: QuotaWaitGroup): boolean {
    const rest = this.#membersLeft.get(group);
    if (rest === undefined) return true;
    this.#queued.delete(group);
    if (this.#rules.isQuotaUnchanged(group)) {
      // For when its tenant gives up something else.
      rest.push(record);
      return false;
    }
    this.#queueNext(group, rest);
    return true;
  }

  #queueNext(group: QuotaWaitGroup, rest: PriorityQueue<ServiceRecord>): void {
    for (let record = rest.pop(); record !== undefined; record = rest.pop()) {
      if (!this.#isPending(record) || !group.members.has(record)) continue;
      this.#queued.add(group);
      this.#queue.push({ record, cause: group });
      return;
    }
  }

  #isPending(record: ServiceRecord): boolean {
    return (
      !this.#considered.has(record) &&
      (this.#lastConsidered === undefined || this.#rules.compare(this.#lastConsidered, record) < 0)
    );
  }
}

/** What comes first is taken first, whenever it was put in: a binary heap. */
export class PriorityQueue<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #heap: T[];

  /** Costs the number of items; each item that is taken or put in, the logarithm of how many there are. */
  constructor(compare: (a: T, b: T) => number, items: Iterable<T> = []) {
    this.#compare = compare;
    this.#heap = [...items];
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at -= 1) this.#siftDown(at);
  }

  push(item: T): void {
    let at = this.#heap.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(at, above)) return;
      this.#swap(at, above);
      at = above;
    }
  }

  /** Who is taken next. */
  get head(): T | undefined {
    return this.#heap[0];
  }

  /** Undefined: it is empty. */
  pop(): T | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#siftDown(0);
    }
    return first;
  }

  #siftDown(from: number): void {
    let at = from;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let first = at;
      if (left < this.#heap.length && this.#isBefore(left, first)) first = left;
      if (right < this.#heap.length && this.#isBefore(right, first)) first = right;
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #isBefore(a: number, b: number): boolean {
    return this.#compare(this.#heap[a] as T, this.#heap[b] as T) < 0;
  }

  #swap(a: number, b: number): void {
    const item = this.#heap[a] as T;
    this.#heap[a] = this.#heap[b] as T;
    this.#heap[b] = item;
  }
}

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
