import type { Change, RoutingTable, TablePosition } from '@weir/model/data-plane';
import { type Clock, systemClock } from '@weir/runtime';
import type { TableStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import {
  applyRevision,
  applySnapshot,
  type FollowerState,
  type FollowerStep,
  initialState,
  type PositionedTable,
  requireSnapshot,
} from './follower-state.ts';
import { retryUntilAborted } from './retry-until-aborted.ts';

export interface FollowTableOptions {
  readonly signal: AbortSignal;
  /** The last table that is known, from the disk: followed on from there. */
  readonly from?: PositionedTable | undefined;
  /** The first table. Not called when there is `from`. */
  readonly onTable: (table: RoutingTable, position: TablePosition) => void;
  /** `table` is the one told before with `changes` applied. No changes: only the position is another. */
  readonly onChanges: (changes: readonly Change[], table: RoutingTable, revision: AppliedRevision) => void;
  /** The store is away, or holds no whole table: told once, until it is back. The last table stays. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  /** Entries that cannot be read (`TableCopy`); those known before by these ids stay. */
  readonly onUnreadable?: (ids: readonly string[], position: TablePosition) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface AppliedRevision {
  readonly position: TablePosition;
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
  let chain: FollowerState = initialState(options.from);

  const take = (step: FollowerStep): void => {
    chain = step.state;
    const { update } = step;
    if (update?.kind === 'table') onTable(update.table, update.position);
    if (update?.kind === 'changes') onChanges(update.changes, update.table, update);
  };
  const report = (ids: readonly string[], position: TablePosition): void => {
    if (ids.length > 0) onUnreadable?.(ids, position);
  };

  await retryUntilAborted({ signal, clock, random, onAway, onBack }, async (alive) => {
    try {
      if (chain.cursor === undefined) {
        const copy = await store.read();
        if (signal.aborted) return;
        if (copy === undefined)
          throw new StoreError('AWAY', 'the store holds no whole table; its leader will publish one');
        alive();
        report(copy.unreadable, copy.position);
        take(applySnapshot(chain, copy));
      } else {
        // so that `onBack` does not wait for the next change
        await store.meta();
        alive();
      }
      while (chain.cursor !== undefined) {
        for await (const revision of store.revisions({ after: chain.cursor.position, signal })) {
          report(revision.unreadable, revision.position);
          take(applyRevision(chain, revision));
          if (chain.cursor === undefined) break;
        }
        if (signal.aborted) return;
      }
      throw new StoreError('GAP', 'the store gave a revision that is not the next one');
    } catch (error) {
      if (error instanceof StoreError && error.code === 'GAP') chain = requireSnapshot(chain);
      throw error;
    }
  });
}
