import { RankedQueue } from './ranked-queue.ts';
import type { ServiceRecord } from './service-record.ts';
import type { WaitingGroup } from './waiting.ts';

export interface TurnRules {
  /** Whose rank is lower comes first. */
  readonly compare: (a: ServiceRecord, b: ServiceRecord) => number;
  /** Whether a group would be told now what it was told. */
  readonly isAnswered: (group: WaitingGroup) => boolean;
  /** Whether a Service that found its ports taken would find the same now. */
  readonly isStillTaken: (record: ServiceRecord) => boolean;
}

interface Turn {
  readonly record: ServiceRecord;
  /** Why it is asked, if that still holds by then: its group would be told something else, or it would find its ports otherwise. */
  readonly why: WaitingGroup | 'ports' | 'must';
}

/**
 * One round, in which each is asked at most once, by rank. Of a group, in which thousands may wait for one place, only who is first is
 * looked at, and the next when that one has had its turn: mostly the place is gone by then.
 */
export class Turns {
  readonly #rules: TurnRules;
  /** In order: mostly it is all of them. */
  readonly #first: readonly ServiceRecord[];
  #at = 0;
  /** Who is added to them. */
  readonly #queue: RankedQueue<Turn>;
  readonly #asked = new Set<ServiceRecord>();
  /** Of the groups that were looked at, those of its members who come after. */
  readonly #rest = new Map<WaitingGroup, RankedQueue<ServiceRecord>>();
  /** Of which one is in the queue, or who is in it for its ports. */
  readonly #queued = new Set<WaitingGroup | ServiceRecord>();
  #last: ServiceRecord | undefined;

  /** `first`: by rank. */
  constructor(rules: TurnRules, first: readonly ServiceRecord[]) {
    this.#rules = rules;
    this.#first = first;
    this.#queue = new RankedQueue((a, b) => rules.compare(a.record, b.record));
  }

  /** Some of its ports were given up or taken. Whose turn was over is left to the next round. */
  add(record: ServiceRecord): void {
    if (this.#queued.has(record) || !this.#isToCome(record)) return;
    this.#queued.add(record);
    this.#queue.put({ record, why: 'ports' });
  }

  addGroup(group: WaitingGroup): void {
    if (this.#queued.has(group)) return;
    const rest = this.#rest.get(group) ?? new RankedQueue(this.#rules.compare, group.members);
    this.#rest.set(group, rest);
    this.#queueNext(group, rest);
  }

  /** Undefined: the round is over. */
  next(): ServiceRecord | undefined {
    for (let turn = this.#take(); turn !== undefined; turn = this.#take()) {
      if (this.#isDue(turn) && !this.#asked.has(turn.record)) {
        this.#asked.add(turn.record);
        this.#last = turn.record;
        return turn.record;
      }
    }
    return undefined;
  }

  #take(): Turn | undefined {
    const record = this.#first[this.#at];
    const { first: added } = this.#queue;
    if (record === undefined || (added !== undefined && this.#rules.compare(added.record, record) < 0)) {
      return this.#queue.take();
    }
    this.#at += 1;
    return { record, why: 'must' };
  }

  #isDue({ record, why }: Turn): boolean {
    if (why === 'must') return true;
    if (why === 'ports') {
      this.#queued.delete(record);
      return !this.#asked.has(record) && !this.#rules.isStillTaken(record);
    }
    return this.#isGroupDue(record, why);
  }

  #isGroupDue(record: ServiceRecord, group: WaitingGroup): boolean {
    const rest = this.#rest.get(group);
    if (rest === undefined) return true;
    this.#queued.delete(group);
    if (this.#rules.isAnswered(group)) {
      // For when its tenant gives up something else.
      rest.put(record);
      return false;
    }
    this.#queueNext(group, rest);
    return true;
  }

  #queueNext(group: WaitingGroup, rest: RankedQueue<ServiceRecord>): void {
    for (let record = rest.take(); record !== undefined; record = rest.take()) {
      if (!this.#isToCome(record) || !group.members.has(record)) continue;
      this.#queued.add(group);
      this.#queue.put({ record, why: group });
      return;
    }
  }

  #isToCome(record: ServiceRecord): boolean {
    return !this.#asked.has(record) && (this.#last === undefined || this.#rules.compare(this.#last, record) < 0);
  }
}
