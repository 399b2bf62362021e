import { apply, type Change, diff, type Entry, type RoutingTable, type TablePosition } from '@weir/model/data-plane';
import { type Clock, systemClock } from '@weir/runtime';
import type { Revision, TableSnapshot, TableStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { isNext, isSamePosition } from '../position.ts';
import { retryUntilAborted, type SubscribeToReady } from './retry-until-aborted.ts';

export interface FollowTableOptions {
  readonly signal: AbortSignal;
  /**
   * The table with which the follower starts, from the proxy's state file. The follower reads the changes after the position of this table.
   */
  readonly from?: PositionedTable | undefined;
  /** Called once with the first table that is read from the store. Not called if `from` is given. */
  readonly onTable: (table: RoutingTable, position: TablePosition) => void;
  /** Called with changes and the table that results from the changes. The list of changes is empty if only the position has changed. */
  readonly onChanges: (changes: readonly Change[], table: RoutingTable, revision: AppliedRevision) => void;
  /** Called once per outage, when the store becomes unreachable or holds no complete table. The last table stays in use. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  readonly onReady?: SubscribeToReady;
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

  await retryUntilAborted({ signal, clock, random, onAway, onBack, onReady: options.onReady }, async (markAlive) => {
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
        // Contacts the store now, because otherwise `markAlive`, which calls `onBack`, would be called only at the next change.
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

// The state of a table follower and the transitions between states. Pure: `followTable` does the reads.
export interface FollowerState {
  /** The last complete table. It stays in use if the store is unreachable, wiped or incomplete. */
  readonly lastTable: PositionedTable | undefined;
  /** Undefined if the complete table must be read, because the follower has no table or has missed revisions. */
  readonly cursor: StreamCursor | undefined;
}

export interface PositionedTable {
  readonly table: RoutingTable;
  readonly position: TablePosition;
}

interface StreamCursor {
  /** The position of the last revision that was read. */
  readonly position: TablePosition;
  /** The changes of incomplete revisions since the last complete table. They are applied together with the next complete revision. */
  readonly pending: readonly Change[];
}

/** An update that `followTable` reports to its callbacks. */
export type TableUpdate =
  | ({ readonly kind: 'table' } & PositionedTable)
  | ({ readonly kind: 'changes'; readonly changes: readonly Change[] } & PositionedTable & Pick<Revision, 'changedAt'>);

export interface FollowerStep {
  readonly state: FollowerState;
  readonly update: TableUpdate | undefined;
}

/** Returns the initial state of a follower, with the table of its state file or without a table. */
export function initialState(lastTable: PositionedTable | undefined): FollowerState {
  return { lastTable, cursor: lastTable && { position: lastTable.position, pending: [] } };
}

/** Returns the state of a follower that has missed revisions: the same table, without the cursor. */
export function requireSnapshot({ lastTable }: FollowerState): FollowerState {
  return { lastTable, cursor: undefined };
}

/**
 * Applies a snapshot. The update contains the complete table if the follower had no table, otherwise only the differences. If only the
 * position differs, the update has no differences.
 */
export function applySnapshot(
  { lastTable }: FollowerState,
  { table, position, unreadable }: TableSnapshot,
): FollowerStep {
  const complete = keepUnreadableEntries(table, unreadable, lastTable?.table);
  const state = { lastTable: { table: complete, position }, cursor: { position, pending: [] } };
  if (lastTable === undefined) return { state, update: { kind: 'table', table: complete, position } };
  const changes = diff(lastTable.table, complete);
  if (changes.length === 0 && isSamePosition(lastTable.position, position)) return { state, update: undefined };
  return { state, update: { kind: 'changes', changes, table: complete, position } };
}

/**
 * Applies a revision. If the revision does not follow the cursor, the new state requires a snapshot. An incomplete revision yields no
 * update.
 */
export function applyRevision(state: FollowerState, revision: Revision): FollowerStep {
  const { lastTable, cursor } = state;
  if (lastTable === undefined || cursor === undefined || !isNext(cursor.position, revision)) {
    return { state: requireSnapshot(state), update: undefined };
  }
  const { position, changedAt } = revision;
  const changes = [...cursor.pending, ...revision.changes];
  if (!revision.complete) return { state: { lastTable, cursor: { position, pending: changes } }, update: undefined };
  const table = apply(lastTable.table, changes);
  return {
    state: { lastTable: { table, position }, cursor: { position, pending: [] } },
    update: { kind: 'changes', changes, table, position, ...(changedAt === undefined ? {} : { changedAt }) },
  };
}

/** Puts the known version of each unreadable entry into the table, because old settings are better than none. */
function keepUnreadableEntries(
  table: RoutingTable,
  unreadable: readonly string[],
  known: RoutingTable | undefined,
): RoutingTable {
  const kept = unreadable.map((id) => known?.entries.get(id)).filter((entry): entry is Entry => entry !== undefined);
  return apply(
    table,
    kept.map((entry) => ({ kind: 'put', entry })),
  );
}
