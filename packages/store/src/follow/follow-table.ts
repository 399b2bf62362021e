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
  /** The table in the proxy's state file. The follower reads the changes after the position of this table. */
  readonly from?: PositionedTable | undefined;
  /** Called once with the first table that is read from the store. Not called if `from` is given. */
  readonly onTable: (table: RoutingTable, position: TablePosition) => void;
  /** Called with changes and the table that results from the changes. The list of changes is empty if only the position has changed. */
  readonly onChanges: (changes: readonly Change[], table: RoutingTable, revision: AppliedRevision) => void;
  /** Called once per outage, when the store becomes unreachable or holds no complete table. The last table stays in use. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  /** Called with the ids of entries that cannot be read. The previous entries with these ids stay in use. */
  readonly onUnreadable?: (ids: readonly string[], position: TablePosition) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface AppliedRevision {
  readonly position: TablePosition;
  /**
   * When the cause of the change was observed, in milliseconds since the Unix epoch. Absent if unknown, or if the follower has read the
   * complete table.
   */
  readonly changedAt?: number;
}

/**
 * Calls `onTable` and `onChanges` with the stored table and each complete change, in order, until `signal` aborts, and then resolves.
 * Retries forever while the store is unreachable. Rejects only with an error that a callback throws.
 */
export async function followTable(store: TableStore, options: FollowTableOptions): Promise<void> {
  const { signal, onTable, onChanges, onAway, onBack, onUnreadable } = options;
  const { clock = systemClock, random = Math.random } = options;
  let state: FollowerState = initialState(options.from);

  const applyStep = (step: FollowerStep): void => {
    state = step.state;
    const { update } = step;
    if (update?.kind === 'table') onTable(update.table, update.position);
    if (update?.kind === 'changes') onChanges(update.changes, update.table, update);
  };
  const reportUnreadable = (ids: readonly string[], position: TablePosition): void => {
    if (ids.length > 0) onUnreadable?.(ids, position);
  };

  await retryUntilAborted({ signal, clock, random, onAway, onBack }, async (markAlive) => {
    try {
      if (state.cursor === undefined) {
        const snapshot = await store.read();
        if (signal.aborted) return;
        if (snapshot === undefined)
          throw new StoreError(
            'AWAY',
            'the store holds no complete table; waiting for the leader to publish the table',
          );
        markAlive();
        reportUnreadable(snapshot.unreadable, snapshot.position);
        applyStep(applySnapshot(state, snapshot));
      } else {
        // Contacts the store now, because otherwise `onBack` would be called only at the next change.
        await store.meta();
        markAlive();
      }
      while (state.cursor !== undefined) {
        for await (const revision of store.revisions({ after: state.cursor.position, signal })) {
          reportUnreadable(revision.unreadable, revision.position);
          applyStep(applyRevision(state, revision));
          if (state.cursor === undefined) break;
        }
        if (signal.aborted) return;
      }
      throw new StoreError('GAP', 'the store returned a revision that does not follow the last revision');
    } catch (error) {
      if (error instanceof StoreError && error.code === 'GAP') state = requireSnapshot(state);
      throw error;
    }
  });
}
