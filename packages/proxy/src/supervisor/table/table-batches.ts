// A whole table in one message would hold up a worker twice: while it is read, since a message is read in one turn of the
// event loop, and while it is applied. So it goes in pieces, as bytes in memory that all workers share.
import {
  type AtomicGroup,
  atomicGroupsFor,
  type Change,
  type Entry,
  type RouteKey,
  routeKey,
} from '@weir/model/data-plane';
import type { LimiterRows } from '../../limits/admission.ts';
import type {
  LazyService,
  PackedTableCommand,
  SentCommand,
  TableCommand,
  WorkerCommand,
} from '../../worker/messages.ts';

/** Of a piece: what takes a worker a fifth of a millisecond. */
const MAX_BATCH_WEIGHT = 16;
const ENDPOINTS_PER_WEIGHT = 8;
/** Source ranges and hosts, which are read when the first client asks. */
const STRINGS_PER_WEIGHT = 200;
/** Characters of certificates: an entry has some thousands of them, and a hundred thousand where its tenant wants. */
const PEM_CHARACTERS_PER_WEIGHT = 6_000;

/** What the main thread takes in at once, with the listeners that it opens for them. */
const MAX_PART_WEIGHT = 400;

/** The same order goes to each worker. */
const packedByCommand = new WeakMap<TableCommand, SentCommand>();
/** Of parts of a larger order. */
const stepsByCommand = new WeakMap<TableCommand, readonly AtomicGroup[]>();

/** The order as it is sent: a large table in pieces. */
export function packTable(order: WorkerCommand): SentCommand {
  if (order.kind !== 'table' || order.changes.length <= 1 || weightOf(order.changes) <= MAX_BATCH_WEIGHT) return order;
  let sent = packedByCommand.get(order);
  if (sent === undefined) {
    sent = order.isFirst ? packLazily(batchesOf(order, 0)) : pack(batchesOf(order, MAX_BATCH_WEIGHT));
    packedByCommand.set(order, sent);
  }
  return sent;
}

/** The order as several, after which a worker is where it would be after this one, and between which no Service is divided. */
export function splitTable(order: TableCommand): TableCommand[] {
  if (weightOf(order.changes) <= MAX_PART_WEIGHT) return [order];
  return batchesOf(order, MAX_PART_WEIGHT).map((part) => {
    stepsByCommand.set(part.command, part.steps);
    return part.command;
  });
}

interface TableBatch {
  readonly command: TableCommand;
  readonly steps: readonly AtomicGroup[];
}

function batchesOf(order: TableCommand, most: number): TableBatch[] {
  const { changes, slots, limits, holders = [], isFirst } = order;
  const slotsLeft = new Map(slots.map((slot) => [slot[0], slot]));
  const limitsLeft = new Map((limits ?? []).map((rows) => [rows[0], rows]));
  const held = Map.groupBy(holders, ([, service]) => service);
  const pieceOf = (steps: readonly AtomicGroup[]): TableBatch => ({
    command: {
      kind: 'table',
      changes: steps.flatMap((step) => step.changes),
      slots: takeFrom(slotsLeft, steps),
      limits: takeFrom(limitsLeft, steps),
      holders: steps.flatMap(({ services }) => services.flatMap((uid) => held.get(uid) ?? [])),
      ...(isFirst && { isFirst }),
    },
    steps,
  });
  const pieces = groupSteps(stepsByCommand.get(order) ?? atomicGroupsFor(changes, holders), most).map(pieceOf);
  if (slotsLeft.size === 0 && limitsLeft.size === 0) return pieces;
  const others: TableCommand = {
    kind: 'table',
    changes: [],
    slots: [...slotsLeft.values()],
    limits: [...limitsLeft.values()],
  };
  return [{ command: others, steps: [] }, ...pieces];
}

function takeFrom<T extends TableCommand['slots'][number] | LimiterRows>(
  left: Map<string, T>,
  steps: readonly AtomicGroup[],
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
function groupSteps(steps: readonly AtomicGroup[], most: number): AtomicGroup[][] {
  const bundles: AtomicGroup[][] = [];
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
    if (change.kind === 'put') weight += extraWeightOf(change.entry);
  }
  return weight;
}

/** What an entry weighs more than the small ones. */
function extraWeightOf(entry: Entry): number {
  if (entry.kind === 'endpoints') return entry.endpoints.length / ENDPOINTS_PER_WEIGHT;
  if (entry.kind === 'certificate')
    return (entry.chain.length + (entry.clientAuthorities?.length ?? 0)) / PEM_CHARACTERS_PER_WEIGHT;
  if (entry.kind !== 'service' || entry.settings === null) return 0;
  return (entry.settings.sourceRanges.length + entry.settings.hosts.length) / STRINGS_PER_WEIGHT;
}

function pack(pieces: readonly TableBatch[]): PackedTableCommand {
  const texts = pieces.map(({ command: { holders: _holders, isFirst: _isFirst, ...piece } }) => JSON.stringify(piece));
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
  return { kind: 'packed-table', bytes, ends };
}

function packLazily(pieces: readonly TableBatch[]): PackedTableCommand {
  return { ...pack(pieces), lazyServices: pieces.map(lazyRouteOf) };
}

/** Null: it is not of one Service alone, or clients ask for that by name. */
function lazyRouteOf({ command: { changes }, steps: [step] }: TableBatch): LazyService | null {
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
