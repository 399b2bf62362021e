// What a follower knows, and what it makes of what it is given: pure. `followTable` does the reading.
import { apply, type Change, diff, type Entry, type RoutingTable, type TablePosition } from '@weir/model/data-plane';
import type { Revision, TableSnapshot } from '../contract.ts';
import { isNext, isSamePosition } from '../position.ts';

export interface FollowerState {
  /** The last whole table: kept for ever, whatever happens to the store. */
  readonly lastTable: PositionedTable | undefined;
  /** Undefined: revisions were missed, and the whole table must be read. */
  readonly cursor: StreamCursor | undefined;
}

export interface PositionedTable {
  readonly table: RoutingTable;
  readonly position: TablePosition;
}

interface StreamCursor {
  /** The last revision taken. */
  readonly position: TablePosition;
  /** Changes since the last whole table that nobody may apply yet: the rest of them is to come. */
  readonly pending: readonly Change[];
}

/** What listeners are told. */
export type TableUpdate =
  | ({ readonly kind: 'table' } & PositionedTable)
  | ({ readonly kind: 'changes'; readonly changes: readonly Change[] } & PositionedTable & Pick<Revision, 'changedAt'>);

export interface FollowerStep {
  readonly state: FollowerState;
  readonly update: TableUpdate | undefined;
}

/** A follower that begins with the copy on its disk, if it has one. */
export function initialState(lastTable: PositionedTable | undefined): FollowerState {
  return { lastTable, cursor: lastTable && { position: lastTable.position, pending: [] } };
}

/** Nothing is forgotten but the place in the stream. */
export function requireSnapshot({ lastTable }: FollowerState): FollowerState {
  return { lastTable, cursor: undefined };
}

/** The whole table was read. Who knows a table already is told only what differs, even if that is nothing but the position. */
export function applySnapshot(
  { lastTable }: FollowerState,
  { table, position, unreadable }: TableSnapshot,
): FollowerStep {
  const whole = keepUnreadableEntries(table, unreadable, lastTable?.table);
  const state = { lastTable: { table: whole, position }, cursor: { position, pending: [] } };
  if (lastTable === undefined) return { state, update: { kind: 'table', table: whole, position } };
  const changes = diff(lastTable.table, whole);
  if (changes.length === 0 && isSamePosition(lastTable.position, position)) return { state, update: undefined };
  return { state, update: { kind: 'changes', changes, table: whole, position } };
}

/** The next revision came; what is not the next breaks the chain. Nothing is delivered before the table is whole. */
export function applyRevision(chain: FollowerState, revision: Revision): FollowerStep {
  const { lastTable, cursor } = chain;
  if (lastTable === undefined || cursor === undefined || !isNext(cursor.position, revision)) {
    return { state: requireSnapshot(chain), update: undefined };
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

/** An entry that this version cannot read stays as it was known: better yesterday's settings than none. */
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
