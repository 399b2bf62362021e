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

/** A snapshot with the kinds that could not be read. */
export type PartialSnapshot = Snapshot & Pick<SourceSnapshot, 'unreadableKinds'>;

export type TableOutcome =
  | 'published'
  | 'new-epoch'
  | 'unchanged'
  /** Another controller has claimed the table since. */
  | 'not-leader'
  /** The store was wiped, and this controller's claim with it. No other controller has claimed the table since. */
  | 'wiped';

/** Translates snapshots into the routing table, starting from the allocations of the last table, and publishes the table to the store. */
export class TableReconciler {
  readonly #publisher: TablePublisher;
  readonly #store: TableStore;
  readonly #log: Logger;
  /** The last complete table in the store. A new translation keeps the allocations of this table. */
  #publishedTable: RoutingTable | undefined;
  /**
   * The part of a new table that the previous leader wrote before that leader ended. Undefined if the store holds a complete table or no
   * table.
   */
  #partialTable: RoutingTable | undefined;
  #isClaimed = false;
  /**
   * The translator, which remembers its last output: after a change, it recomputes only the objects that the change affects. Undefined
   * while another controller leads.
   */
  #translator: Translator | undefined;
  #translation: TranslatorOutput | undefined;
  #hasPublishFailed = false;
  /** Objects from the published table that replace the objects of unreadable kinds. Undefined while every kind can be read. */
  #fallbackObjects: FallbackObjects | undefined;

  constructor({ store, log }: { readonly store: TableStore; readonly log: Logger }) {
    this.#publisher = new TablePublisher({ store });
    this.#store = store;
    this.#log = log;
  }

  /** The last translation of this term; undefined before the first translation. */
  get translation(): TranslatorOutput | undefined {
    return this.#translation;
  }

  /** Whether the last attempt to publish failed, because the store was unreachable or refused the table. */
  get hasPublishFailed(): boolean {
    return this.#hasPublishFailed;
  }

  get isClaimed(): boolean {
    return this.#isClaimed;
  }

  /** The table from which this term continues: the last table in the store, or an empty table. Undefined before `claim`. */
  get publishedTable(): RoutingTable | undefined {
    if (!this.#isClaimed) return undefined;
    return this.#publishedTable ?? this.#partialTable ?? EMPTY_TABLE;
  }

  /**
   * Claims the table, unless this controller has already claimed it, and reads its allocations. Rejects if the store is unreachable;
   * then call `claim` again.
   */
  async claim(): Promise<void> {
    if (this.#isClaimed) return;
    const stored = await this.#publisher.becomeLeader();
    this.#partialTable = stored === undefined ? await this.#store.readPartial() : undefined;
    this.#publishedTable = stored?.table ?? this.#publishedTable;
    this.#isClaimed = true;
    this.#log.info({ position: stored?.position ?? null }, 'claimed the routing table');
  }

  /** Call this when leadership is lost, because the next term must read the published table again. */
  reset(): void {
    this.#isClaimed = false;
    this.#translator = undefined;
    this.#translation = undefined;
    this.#fallbackObjects = undefined;
  }

  /** Call this after the connection to the store was lost, so that the next publication first checks what the store holds. */
  recheckStore(): void {
    this.#publisher.recheck();
  }

  /**
   * Whether the store still holds the last published table. Returns true if a publication happens at the same time, because the
   * expected content is unknown then.
   */
  async isStoreIntact(): Promise<boolean> {
    const before = this.#publisher.published?.position;
    const meta = await this.#store.meta();
    const after = this.#publisher.published?.position;
    return before === undefined || before !== after || isSamePosition(before, meta);
  }

  /**
   * Translates and publishes a snapshot. Rejects if the store is unreachable; then call `reconcile` again. `changedAt` is when the
   * objects of the snapshot changed, in milliseconds since the epoch. The first call of a term ignores `changedAt`, because this
   * controller did not observe the changes before the term.
   */
  async reconcile(snapshot: PartialSnapshot, changedAt?: number): Promise<TableOutcome> {
    await this.claim();
    const isFirst = this.#translation === undefined;
    const { table } = this.#translate(this.#withFallbackObjects(snapshot));
    const outcome = await this.#publisher.publish(table, isFirst ? undefined : changedAt).catch((error: unknown) => {
      this.#hasPublishFailed = true;
      throw error;
    });
    this.#hasPublishFailed = false;
    if (outcome.kind === 'not-leader') {
      const isWiped = outcome.leader === 0;
      const why = isWiped ? 'the store was wiped' : 'another controller has claimed the table';
      this.#log.warn(
        { leader: outcome.leader, why },
        'lost the claim on the routing table; claiming the table again if this controller is elected',
      );
      this.reset();
      return isWiped ? 'wiped' : 'not-leader';
    }
    this.#publishedTable = table;
    this.#partialTable = undefined;
    if (outcome.kind === 'unchanged') return 'unchanged';
    this.#log.info({ position: outcome.position, entries: table.entries.size }, 'routing table published');
    return outcome.newEpoch ? 'new-epoch' : 'published';
  }

  #translate(snapshot: Snapshot): TranslatorOutput {
    const translator =
      this.#translator ?? new Translator(snapshot.settings, mergeAllocations(this.#publishedTable, this.#partialTable));
    // If `translate` throws, the translator may be half updated and is not used again.
    this.#translator = undefined;
    this.#translation = translator.translate(snapshot);
    this.#translator = translator;
    return this.#translation;
  }

  /** Replaces objects of unreadable kinds by objects derived from the published table. */
  #withFallbackObjects(snapshot: PartialSnapshot): Snapshot {
    const { unreadableKinds } = snapshot;
    if (unreadableKinds === undefined || unreadableKinds.size === 0) {
      this.#fallbackObjects = undefined;
      return snapshot;
    }
    if (this.#publishedTable === undefined && hasPublishedService(snapshot)) {
      const kinds = [...unreadableKinds].join(', ');
      throw new Error(
        `the controller may not list ${kinds}, and the store has no table to take the missing objects from; the controller publishes no table, because some Services already have a published address and could stop working; grant the controller the right to list ${kinds}`,
      );
    }
    this.#fallbackObjects = fallbackObjectsFor(
      this.#publishedTable ?? EMPTY_TABLE,
      { pods: snapshot.pods, unreadableKinds },
      this.#fallbackObjects,
    );
    return withFallbackObjects(snapshot, unreadableKinds, this.#fallbackObjects);
  }
}

/**
 * Returns the allocations of `complete`, overridden by the allocations of `partial`, a newer table that its leader could not write
 * completely. Ignores a listener in `partial` without its Service entry, because the tenant and quota of the Service are unknown.
 */
export function mergeAllocations(complete: RoutingTable | undefined, partial: RoutingTable | undefined): Allocations {
  const before = allocationsFor(complete ?? EMPTY_TABLE);
  if (partial === undefined) return before;
  const since = allocationsFor(partial);
  const older = [...before.listeners].filter(([, { service }]) => !since.services.has(service));
  const newer = [...since.listeners].filter(([, { service }]) => since.services.has(service));
  return {
    listeners: new Map([...older, ...newer]),
    services: new Map([...before.services, ...since.services]),
    endpoints: new Map([...before.endpoints, ...since.endpoints]),
  };
}
