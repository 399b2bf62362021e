// A whole table in one message would hold up a worker twice: while it is read, since a message is read in one turn of the
// event loop, and while it is applied. So it goes in pieces, as bytes in memory that all workers share.
import { type Change, type ChangeStep, type Entry, type RouteKey, routeKey, stepsFor } from '@weir/model/data-plane';
import type { BudgetRows } from '../admit/worker-limits.ts';
import type { Order, PiecesOrder, SentOrder, Sleeper, TableOrder } from '../worker/messages.ts';

/** Of a piece: what takes a worker a fifth of a millisecond. */
const PIECE_WEIGHT = 16;
const ENDPOINTS_PER_WEIGHT = 8;
/** Source ranges and hosts, which are read when the first client asks. */
const TEXTS_PER_WEIGHT = 200;
/** Characters of certificates: an entry has some thousands of them, and a hundred thousand where its tenant wants. */
const PEM_PER_WEIGHT = 6_000;

/** What the main thread takes in at once, with the listeners that it opens for them. */
const PART_WEIGHT = 400;

/** The same order goes to each worker. */
const known = new WeakMap<TableOrder, SentOrder>();
/** Of parts of a larger order. */
const knownSteps = new WeakMap<TableOrder, readonly ChangeStep[]>();

/** The order as it is sent: a large table in pieces. */
export function inPieces(order: Order): SentOrder {
  if (order.kind !== 'table' || order.changes.length <= 1 || weightOf(order.changes) <= PIECE_WEIGHT) return order;
  let sent = known.get(order);
  if (sent === undefined) {
    sent = order.isFirst ? packedToSleep(piecesOf(order, 0)) : packed(piecesOf(order, PIECE_WEIGHT));
    known.set(order, sent);
  }
  return sent;
}

/** The order as several, after which a worker is where it would be after this one, and between which no Service is divided. */
export function inParts(order: TableOrder): TableOrder[] {
  if (weightOf(order.changes) <= PART_WEIGHT) return [order];
  return piecesOf(order, PART_WEIGHT).map((part) => {
    knownSteps.set(part.order, part.steps);
    return part.order;
  });
}

interface Piece {
  readonly order: TableOrder;
  readonly steps: readonly ChangeStep[];
}

function piecesOf(order: TableOrder, most: number): Piece[] {
  const { changes, slots, limits, holders = [], isFirst } = order;
  const slotsLeft = new Map(slots.map((slot) => [slot[0], slot]));
  const limitsLeft = new Map((limits ?? []).map((rows) => [rows[0], rows]));
  const held = Map.groupBy(holders, ([, service]) => service);
  const pieceOf = (steps: readonly ChangeStep[]): Piece => ({
    order: {
      kind: 'table',
      changes: steps.flatMap((step) => step.changes),
      slots: takeFrom(slotsLeft, steps),
      limits: takeFrom(limitsLeft, steps),
      holders: steps.flatMap(({ services }) => services.flatMap((uid) => held.get(uid) ?? [])),
      ...(isFirst && { isFirst }),
    },
    steps,
  });
  const pieces = bundlesOf(knownSteps.get(order) ?? stepsFor(changes, holders), most).map(pieceOf);
  if (slotsLeft.size === 0 && limitsLeft.size === 0) return pieces;
  const others: TableOrder = {
    kind: 'table',
    changes: [],
    slots: [...slotsLeft.values()],
    limits: [...limitsLeft.values()],
  };
  return [{ order: others, steps: [] }, ...pieces];
}

function takeFrom<T extends TableOrder['slots'][number] | BudgetRows>(
  left: Map<string, T>,
  steps: readonly ChangeStep[],
): T[] {
  const taken: T[] = [];
  for (const { services } of steps) {
    for (const uid of services) {
      const found = left.get(uid);
      if (found === undefined) continue;
      left.delete(uid);
      taken.push(found);
    }
  }
  return taken;
}

/** Steps are not divided: one Service with very many endpoints is one piece. */
function bundlesOf(steps: readonly ChangeStep[], most: number): ChangeStep[][] {
  const bundles: ChangeStep[][] = [];
  let weight = Number.POSITIVE_INFINITY;
  for (const step of steps) {
    const more = weightOf(step.changes);
    weight += more;
    if (weight > most) {
      bundles.push([]);
      weight = more;
    }
    bundles.at(-1)?.push(step);
  }
  return bundles;
}

function weightOf(changes: readonly Change[]): number {
  let weight = 0;
  for (const change of changes) {
    weight += 1;
    if (change.kind === 'put') weight += moreOf(change.entry);
  }
  return weight;
}

/** What an entry weighs more than the small ones. */
function moreOf(entry: Entry): number {
  if (entry.kind === 'endpoints') return entry.endpoints.length / ENDPOINTS_PER_WEIGHT;
  if (entry.kind === 'certificate')
    return (entry.chain.length + (entry.clientAuthorities?.length ?? 0)) / PEM_PER_WEIGHT;
  if (entry.kind !== 'service' || entry.settings === null) return 0;
  return (entry.settings.sourceRanges.length + entry.settings.hosts.length) / TEXTS_PER_WEIGHT;
}

function packed(pieces: readonly Piece[]): PiecesOrder {
  const texts = pieces.map(({ order: { holders: _holders, isFirst: _isFirst, ...piece } }) => JSON.stringify(piece));
  const ends = new Uint32Array(texts.length);
  let end = 0;
  texts.forEach((text, index) => {
    end += Buffer.byteLength(text);
    ends[index] = end;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(end));
  const buffer = Buffer.from(bytes.buffer);
  texts.forEach((text, index) => {
    buffer.write(text, ends[index - 1] ?? 0);
  });
  return { kind: 'pieces', bytes, ends };
}

function packedToSleep(pieces: readonly Piece[]): PiecesOrder {
  return { ...packed(pieces), sleepers: pieces.map(sleeperOf) };
}

/** Null: it is not of one Service alone, or clients ask for that by name. */
function sleeperOf({ order: { changes }, steps: [step] }: Piece): Sleeper | null {
  const [service, ...others] = step?.services ?? [];
  if (service === undefined || others.length > 0) return null;
  const routes: RouteKey[] = [];
  for (const change of changes) {
    if (change.kind === 'delete') return null;
    if (change.entry.kind !== 'listener') continue;
    if (change.entry.shared === true) return null;
    routes.push(routeKey(change.entry));
  }
  return [service, ...routes];
}
