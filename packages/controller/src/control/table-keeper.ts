import { type Decided, EMPTY_TABLE, type RoutingTable, type Snapshot, Translator } from '@weir/model';
import type { Logger } from '@weir/runtime';
import { isSamePosition, TablePublisher, type TableStore } from '@weir/store';
import { isAnythingServed, type StandIns, standInsFor, withStandIns } from '../snapshot/stand-ins.ts';
import type { SourceSnapshot } from '../watch/source.ts';
import { heldFrom } from './held-from.ts';

/** A snapshot, and what of it could not be read. */
export type ReadSnapshot = Snapshot & Pick<SourceSnapshot, 'unread'>;

export type TableOutcome =
  | 'published'
  | 'new-epoch'
  | 'unchanged'
  /** Another has led after us. */
  | 'not-leader'
  /** So is our right to write it, but nobody else has led since. */
  | 'wiped';

/** Decides the routing table on top of what the last one granted, and makes the store hold it. */
export class TableKeeper {
  readonly #publisher: TablePublisher;
  readonly #store: TableStore;
  readonly #log: Logger;
  /** The last table that was in force: what it granted is held. */
  #base: RoutingTable | undefined;
  /** What a leader had written of the next one when it ended; undefined: all of it, or nothing. */
  #remains: RoutingTable | undefined;
  #isLeading = false;
  /** Remembers what was decided, so that a change costs what it touches; none while another leads. */
  #translator: Translator | undefined;
  #translation: Decided | undefined;
  /** None while every kind is read. */
  #standIns: StandIns | undefined;

  constructor({ store, log }: { readonly store: TableStore; readonly log: Logger }) {
    this.#publisher = new TablePublisher({ store });
    this.#store = store;
    this.#log = log;
  }

  /** The last decision made in the lead; undefined: none. */
  get translation(): Decided | undefined {
    return this.#translation;
  }

  get isLeading(): boolean {
    return this.#isLeading;
  }

  /** Claims the table, unless that was done, and reads what was granted. Rejects when the store is away; then come again. */
  async lead(): Promise<void> {
    if (this.#isLeading) return;
    const copy = await this.#publisher.lead();
    this.#remains = copy === undefined ? await this.#store.remains() : undefined;
    this.#base = copy?.table ?? this.#base;
    this.#isLeading = true;
    this.#log.info({ position: copy?.position ?? null }, 'leading');
  }

  /** Follows without writing; what is in force is read again before leading. */
  follow(): void {
    this.#isLeading = false;
    this.#translator = undefined;
    this.#translation = undefined;
    this.#standIns = undefined;
  }

  /** The connection was lost: what the store holds is looked at before the next change. */
  recheck(): void {
    this.#publisher.recheck();
  }

  /** Whether the store holds what was written last. While that is being written nothing can be said, so nothing is. */
  async isIntact(): Promise<boolean> {
    const before = this.#publisher.published?.position;
    const meta = await this.#store.meta();
    const after = this.#publisher.published?.position;
    return before === undefined || before !== after || isSamePosition(before, meta);
  }

  /**
   * Rejects when the store is away; then come again. `changedAt`: since when the world has been as the snapshot says, milliseconds
   * since the epoch. Of what is found on taking the lead that is not known: we did not see it change.
   */
  async keep(snapshot: ReadSnapshot, changedAt?: number): Promise<TableOutcome> {
    await this.lead();
    const isFirst = this.#translation === undefined;
    const { table } = this.#translate(this.#completed(snapshot));
    const outcome = await this.#publisher.publish(table, isFirst ? undefined : changedAt);
    if (outcome.kind === 'not-leader') {
      const isWiped = outcome.leader === 0;
      const why = isWiped ? 'the store was wiped' : 'another controller led after us';
      this.#log.warn(
        { leader: outcome.leader, why },
        'our right to write the table is gone: claiming it again if we are still elected',
      );
      this.follow();
      return isWiped ? 'wiped' : 'not-leader';
    }
    this.#base = table;
    this.#remains = undefined;
    if (outcome.kind === 'unchanged') return 'unchanged';
    this.#log.info({ position: outcome.position, entries: table.entries.size }, 'routing table published');
    return outcome.newEpoch ? 'new-epoch' : 'published';
  }

  #translate(snapshot: Snapshot): Decided {
    const translator = this.#translator ?? new Translator(snapshot.settings, heldFrom(this.#base, this.#remains));
    // Whatever it throws on: it may have remembered half of it.
    this.#translator = undefined;
    this.#translation = translator.next(snapshot);
    this.#translator = translator;
    return this.#translation;
  }

  /** With what the table in force tells of kinds that may not be read. */
  #completed(snapshot: ReadSnapshot): Snapshot {
    const { unread } = snapshot;
    if (unread === undefined || unread.size === 0) {
      this.#standIns = undefined;
      return snapshot;
    }
    if (this.#base === undefined && isAnythingServed(snapshot)) {
      throw new Error(
        `Services have addresses, so proxies serve them, and nothing tells how: the store has no table, and the right is missing to list ${[...unread].join(', ')}`,
      );
    }
    this.#standIns = standInsFor(this.#base ?? EMPTY_TABLE, { pods: snapshot.pods, unread }, this.#standIns);
    return withStandIns(snapshot, unread, this.#standIns);
  }
}
