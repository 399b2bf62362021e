import {
  type Allocations,
  allocationsFor,
  EMPTY_TABLE,
  type RoutingTable,
  type Snapshot,
  Translator,
  type TranslatorOutput,
} from '@weir/model';
import type { Logger } from '@weir/runtime';
import { isSamePosition, TablePublisher, type TableStore } from '@weir/store';
import {
  type FallbackObjects,
  fallbackObjectsFor,
  hasPublishedService,
  withFallbackObjects,
} from '../snapshot/fallback-objects.ts';
import type { SourceSnapshot } from '../watch/source.ts';

/** A snapshot, and what of it could not be read. */
export type PartialSnapshot = Snapshot & Pick<SourceSnapshot, 'unreadableKinds'>;

export type TableOutcome =
  | 'published'
  | 'new-epoch'
  | 'unchanged'
  /** Another has led after us. */
  | 'not-leader'
  /** So is our right to write it, but nobody else has led since. */
  | 'wiped';

/** Decides the routing table on top of what the last one granted, and makes the store hold it. */
export class TableReconciler {
  readonly #publisher: TablePublisher;
  readonly #store: TableStore;
  readonly #log: Logger;
  /** The last table that was in force: what it granted is held. */
  #tableInForce: RoutingTable | undefined;
  /** What a leader had written of the next one when it ended; undefined: all of it, or nothing. */
  #partialTable: RoutingTable | undefined;
  #isClaimed = false;
  /** Remembers what was decided, so that a change costs what it touches; none while another leads. */
  #translator: Translator | undefined;
  #translation: TranslatorOutput | undefined;
  /** None while every kind is read. */
  #fallbackObjects: FallbackObjects | undefined;

  constructor({ store, log }: { readonly store: TableStore; readonly log: Logger }) {
    this.#publisher = new TablePublisher({ store });
    this.#store = store;
    this.#log = log;
  }

  /** The last decision made in the lead; undefined: none. */
  get translation(): TranslatorOutput | undefined {
    return this.#translation;
  }

  get isClaimed(): boolean {
    return this.#isClaimed;
  }

  /** Claims the table, unless that was done, and reads what was granted. Rejects when the store is away; then come again. */
  async claim(): Promise<void> {
    if (this.#isClaimed) return;
    const copy = await this.#publisher.becomeLeader();
    this.#partialTable = copy === undefined ? await this.#store.readPartial() : undefined;
    this.#tableInForce = copy?.table ?? this.#tableInForce;
    this.#isClaimed = true;
    this.#log.info({ position: copy?.position ?? null }, 'leading');
  }

  /** Follows without writing; what is in force is read again before leading. */
  reset(): void {
    this.#isClaimed = false;
    this.#translator = undefined;
    this.#translation = undefined;
    this.#fallbackObjects = undefined;
  }

  /** The connection was lost: what the store holds is looked at before the next change. */
  recheckStore(): void {
    this.#publisher.recheck();
  }

  /** Whether the store holds what was written last. While that is being written nothing can be said, so nothing is. */
  async isStoreIntact(): Promise<boolean> {
    const before = this.#publisher.published?.position;
    const meta = await this.#store.meta();
    const after = this.#publisher.published?.position;
    return before === undefined || before !== after || isSamePosition(before, meta);
  }

  /**
   * Rejects when the store is away; then come again. `changedAt`: since when the world has been as the snapshot says, milliseconds
   * since the epoch. Of what is found on taking the lead that is not known: we did not see it change.
   */
  async reconcile(snapshot: PartialSnapshot, changedAt?: number): Promise<TableOutcome> {
    await this.claim();
    const isFirst = this.#translation === undefined;
    const { table } = this.#translate(this.#withFallbackObjects(snapshot));
    const outcome = await this.#publisher.publish(table, isFirst ? undefined : changedAt);
    if (outcome.kind === 'not-leader') {
      const isWiped = outcome.leader === 0;
      const why = isWiped ? 'the store was wiped' : 'another controller led after us';
      this.#log.warn(
        { leader: outcome.leader, why },
        'our right to write the table is gone: claiming it again if we are still elected',
      );
      this.reset();
      return isWiped ? 'wiped' : 'not-leader';
    }
    this.#tableInForce = table;
    this.#partialTable = undefined;
    if (outcome.kind === 'unchanged') return 'unchanged';
    this.#log.info({ position: outcome.position, entries: table.entries.size }, 'routing table published');
    return outcome.newEpoch ? 'new-epoch' : 'published';
  }

  #translate(snapshot: Snapshot): TranslatorOutput {
    const translator =
      this.#translator ?? new Translator(snapshot.settings, allocationsFrom(this.#tableInForce, this.#partialTable));
    // Whatever it throws on: it may have remembered half of it.
    this.#translator = undefined;
    this.#translation = translator.translate(snapshot);
    this.#translator = translator;
    return this.#translation;
  }

  /** With what the table in force tells of kinds that may not be read. */
  #withFallbackObjects(snapshot: PartialSnapshot): Snapshot {
    const { unreadableKinds } = snapshot;
    if (unreadableKinds === undefined || unreadableKinds.size === 0) {
      this.#fallbackObjects = undefined;
      return snapshot;
    }
    if (this.#tableInForce === undefined && hasPublishedService(snapshot)) {
      throw new Error(
        `Services have addresses, so proxies serve them, and nothing tells how: the store has no table, and the right is missing to list ${[...unreadableKinds].join(', ')}`,
      );
    }
    this.#fallbackObjects = fallbackObjectsFor(
      this.#tableInForce ?? EMPTY_TABLE,
      { pods: snapshot.pods, unreadableKinds },
      this.#fallbackObjects,
    );
    return withFallbackObjects(snapshot, unreadableKinds, this.#fallbackObjects);
  }
}

/**
 * What Services have, by the last whole table that is known and by what was written of a newer one when its leader ended. A listener
 * without its Service says nothing: what that was granted, and by whom it is counted, is not known.
 */
export function allocationsFrom(whole: RoutingTable | undefined, remains: RoutingTable | undefined): Allocations {
  const before = allocationsFor(whole ?? EMPTY_TABLE);
  if (remains === undefined) return before;
  const since = allocationsFor(remains);
  const older = [...before.listeners].filter(([, { service }]) => !since.services.has(service));
  const newer = [...since.listeners].filter(([, { service }]) => since.services.has(service));
  return {
    listeners: new Map([...older, ...newer]),
    services: new Map([...before.services, ...since.services]),
  };
}
