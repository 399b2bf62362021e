// The state of a table follower and the transitions between states. Pure: `followTable` does the reads.
import { apply, type Change, diff, type Entry, type RoutingTable, type TablePosition } from '@weir/model/data-plane';
import type { Revision, TableSnapshot } from '../contract.ts';
import { isNext, isSamePosition } from '../position.ts';

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
 * Applies a snapshot. The update contains the complete table if the follower had no table, otherwise only the differences. The differences
 * may be empty, if only the position differs.
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
