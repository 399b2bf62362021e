// A whole table in one message would hold up a worker twice: while it is read, since a message is read in one turn of the
// event loop, and while it is applied. So it goes in pieces, as bytes in memory that all workers share.
import { type Change, type ChangeStep, type Entry, stepsFor } from '@weir/model';
import type { BudgetRows } from '../admit/worker-limits.ts';
import type { Order, SentOrder, TableOrder } from '../worker/messages.ts';

/** Of a piece: what takes a worker a fifth of a millisecond. */
const PIECE_WEIGHT = 16;
const ENDPOINTS_PER_WEIGHT = 8;
/** Source ranges and hosts, which are read when the first client asks. */
const TEXTS_PER_WEIGHT = 200;

/** What the main thread takes in at once, with the listeners that it opens for them. */
const PART_WEIGHT = 400;

/** The same order goes to each worker. */
const known = new WeakMap<TableOrder, SentOrder>();

/** The order as it is sent: a large table in pieces. */
export function inPieces(order: Order): SentOrder {
  if (order.kind !== 'table' || order.changes.length <= 1 || weightOf(order.changes) <= PIECE_WEIGHT) return order;
  let sent = known.get(order);
  if (sent === undefined) {
    sent = packed(piecesOf(order, PIECE_WEIGHT).map(({ holders: _known, ...piece }) => piece));
    known.set(order, sent);
  }
  return sent;
}

/** The order as several, after which a worker is where it would be after this one, and between which no Service is divided. */
export function inParts(order: TableOrder): TableOrder[] {
  return weightOf(order.changes) <= PART_WEIGHT ? [order] : piecesOf(order, PART_WEIGHT);
}

function piecesOf({ changes, slots, limits, holders = [] }: TableOrder, most: number): TableOrder[] {
  const slotsLeft = new Map(slots.map((slot) => [slot[0], slot]));
  const limitsLeft = new Map((limits ?? []).map((rows) => [rows[0], rows]));
  const held = Map.groupBy(holders, ([, service]) => service);
  const pieces = bundlesOf(stepsFor(changes, holders), most).map(
    (steps): TableOrder => ({
      kind: 'table',
      changes: steps.flatMap((step) => step.changes),
      slots: takeFrom(slotsLeft, steps),
      limits: takeFrom(limitsLeft, steps),
      holders: steps.flatMap(({ services }) => services.flatMap((uid) => held.get(uid) ?? [])),
    }),
  );
  if (slotsLeft.size === 0 && limitsLeft.size === 0) return pieces;
  const others: TableOrder = {
    kind: 'table',
    changes: [],
    slots: [...slotsLeft.values()],
    limits: [...limitsLeft.values()],
  };
  return [others, ...pieces];
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
  if (entry.kind !== 'service' || entry.settings === null) return 0;
  return (entry.settings.sourceRanges.length + entry.settings.hosts.length) / TEXTS_PER_WEIGHT;
}

function packed(pieces: readonly TableOrder[]): SentOrder {
  const texts = pieces.map((piece) => Buffer.from(JSON.stringify(piece)));
  const ends = new Uint32Array(texts.length);
  let end = 0;
  texts.forEach((text, index) => {
    end += text.length;
    ends[index] = end;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(end));
  texts.forEach((text, index) => {
    bytes.set(text, (ends[index] ?? 0) - text.length);
  });
  return { kind: 'pieces', bytes, ends };
}
