import type { Change, Position, RoutingTable } from '@weir/model/data-plane';
import { type Clock, systemClock } from '@weir/runtime';
import type { TableStore } from '../contract.ts';
import { StoreError } from '../error.ts';
import { keepFollowing } from './keep-following.ts';
import {
  breakChain,
  type ChainStep,
  chainFrom,
  type PlacedTable,
  type TableChain,
  takeCopy,
  takeRevision,
} from './table-chain.ts';

export interface FollowTableOptions {
  readonly signal: AbortSignal;
  /** The last table that is known, from the disk: followed on from there. */
  readonly from?: PlacedTable | undefined;
  /** The first table. Not called when there is `from`. */
  readonly onTable: (table: RoutingTable, position: Position) => void;
  /** `table` is the one told before with `changes` applied. No changes: only the position is another. */
  readonly onChanges: (changes: readonly Change[], table: RoutingTable, revision: TakenRevision) => void;
  /** The store is away, or holds no whole table: told once, until it is back. The last table stays. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  /** Entries that cannot be read (`TableCopy`); those known before by these ids stay. */
  readonly onUnreadable?: (ids: readonly string[], position: Position) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface TakenRevision {
  readonly position: Position;
  /** Since when the world has been so, milliseconds since the epoch; absent: not known, or several changes were read at once. */
  readonly changedAt?: number;
}

/**
 * Tells of the table in the store, and of each change of it, in order and only whole ones, until the signal aborts; then it
 * resolves. It goes on for ever while the store is away. Rejects only with what a listener throws.
 */
export async function followTable(store: TableStore, options: FollowTableOptions): Promise<void> {
  const { signal, onTable, onChanges, onAway, onBack, onUnreadable } = options;
  const { clock = systemClock, random = Math.random } = options;
  let chain: TableChain = chainFrom(options.from);

  const take = (step: ChainStep): void => {
    chain = step.chain;
    const { delivery } = step;
    if (delivery?.kind === 'table') onTable(delivery.table, delivery.position);
    if (delivery?.kind === 'changes') onChanges(delivery.changes, delivery.table, delivery);
  };
  const report = (ids: readonly string[], position: Position): void => {
    if (ids.length > 0) onUnreadable?.(ids, position);
  };

  await keepFollowing({ signal, clock, random, onAway, onBack }, async (alive) => {
    try {
      if (chain.link === undefined) {
        const copy = await store.read();
        if (signal.aborted) return;
        if (copy === undefined)
          throw new StoreError('AWAY', 'the store holds no whole table; its leader will publish one');
        alive();
        report(copy.unreadable, copy.position);
        take(takeCopy(chain, copy));
      } else {
        // so that `onBack` does not wait for the next change
        await store.meta();
        alive();
      }
      while (chain.link !== undefined) {
        for await (const revision of store.revisions({ after: chain.link.position, signal })) {
          report(revision.unreadable, revision.position);
          take(takeRevision(chain, revision));
          if (chain.link === undefined) break;
        }
        if (signal.aborted) return;
      }
      throw new StoreError('GAP', 'the store gave a revision that is not the next one');
    } catch (error) {
      if (error instanceof StoreError && error.code === 'GAP') chain = breakChain(chain);
      throw error;
    }
  });
}
