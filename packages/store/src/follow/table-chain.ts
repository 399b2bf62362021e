// What a follower knows, and what it makes of what it is given: pure. `followTable` does the reading.
import { apply, type Change, diff, type Entry, type Position, type RoutingTable } from '@weir/model/data-plane';
import type { Revision, TableCopy } from '../contract.ts';
import { isNext, isSamePosition } from '../position.ts';

export interface TableChain {
  /** The last whole table: kept for ever, whatever happens to the store. */
  readonly known: PlacedTable | undefined;
  /** Undefined: revisions were missed, and the whole table must be read. */
  readonly link: ChainLink | undefined;
}

export interface PlacedTable {
  readonly table: RoutingTable;
  readonly position: Position;
}

interface ChainLink {
  /** The last revision taken. */
  readonly position: Position;
  /** Changes since the last whole table that nobody may apply yet: the rest of them is to come. */
  readonly pending: readonly Change[];
}

/** What listeners are told. */
export type Delivery =
  | ({ readonly kind: 'table' } & PlacedTable)
  | ({ readonly kind: 'changes'; readonly changes: readonly Change[] } & PlacedTable & Pick<Revision, 'changedAt'>);

export interface ChainStep {
  readonly chain: TableChain;
  readonly delivery: Delivery | undefined;
}

/** A follower that begins with the copy on its disk, if it has one. */
export function chainFrom(known: PlacedTable | undefined): TableChain {
  return { known, link: known && { position: known.position, pending: [] } };
}

/** Nothing is forgotten but the place in the stream. */
export function breakChain({ known }: TableChain): TableChain {
  return { known, link: undefined };
}

/** The whole table was read. Who knows a table already is told only what differs, even if that is nothing but the position. */
export function takeCopy({ known }: TableChain, { table, position, unreadable }: TableCopy): ChainStep {
  const whole = withKnown(table, unreadable, known?.table);
  const chain = { known: { table: whole, position }, link: { position, pending: [] } };
  if (known === undefined) return { chain, delivery: { kind: 'table', table: whole, position } };
  const changes = diff(known.table, whole);
  if (changes.length === 0 && isSamePosition(known.position, position)) return { chain, delivery: undefined };
  return { chain, delivery: { kind: 'changes', changes, table: whole, position } };
}

/** The next revision came; what is not the next breaks the chain. Nothing is delivered before the table is whole. */
export function takeRevision(chain: TableChain, revision: Revision): ChainStep {
  const { known, link } = chain;
  if (known === undefined || link === undefined || !isNext(link.position, revision)) {
    return { chain: breakChain(chain), delivery: undefined };
  }
  const { position, changedAt } = revision;
  const changes = [...link.pending, ...revision.changes];
  if (!revision.complete) return { chain: { known, link: { position, pending: changes } }, delivery: undefined };
  const table = apply(known.table, changes);
  return {
    chain: { known: { table, position }, link: { position, pending: [] } },
    delivery: { kind: 'changes', changes, table, position, ...(changedAt === undefined ? {} : { changedAt }) },
  };
}

/** An entry that this version cannot read stays as it was known: better yesterday's settings than none. */
function withKnown(table: RoutingTable, unreadable: readonly string[], known: RoutingTable | undefined): RoutingTable {
  const kept = unreadable.map((id) => known?.entries.get(id)).filter((entry): entry is Entry => entry !== undefined);
  return apply(
    table,
    kept.map((entry) => ({ kind: 'put', entry })),
  );
}
