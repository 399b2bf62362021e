import { decodeEntry, type Entry, type Position, type RoutingTable } from '@weir/model/data-plane';
import type { TableCopy } from '../contract.ts';
import { StoreError } from '../error.ts';
import { isNext, isSamePosition } from '../position.ts';
import type { RedisConnection } from './connection.ts';
import type { Keys } from './keys.ts';
import { decodeMeta, decodeRevision, META_FIELDS, type StreamEntry } from './table-codec.ts';
import { atOnce } from './transaction.ts';

const ATTEMPTS = 5;
const ENTRIES_PER_SCAN = 1_000;

/**
 * The whole table at one position, while it may be published on: what HSCAN saw is each entry at some revision since the one
 * read before it, and the changes since then, applied in order, make all of them the last. Undefined: none is whole.
 */
export async function readTable(connection: RedisConnection, keys: Keys): Promise<TableCopy | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const meta = decodeMeta(await connection.call((redis) => redis.hmget(keys.meta, ...META_FIELDS)));
    if (meta === undefined || !meta.complete) return undefined;
    const found = await scan(connection, keys);
    const outcome = await catchUp(connection, keys, { from: meta, found });
    if (outcome !== 'again') return outcome;
  }
  throw new StoreError('AWAY', 'the table was begun anew each time that it was read; it is read again');
}

/** What lies there, whole or not. */
export async function readRemains(connection: RedisConnection, keys: Keys): Promise<RoutingTable | undefined> {
  const { entries } = readableOf(await scan(connection, keys));
  return entries.size === 0 ? undefined : { entries };
}

async function scan(connection: RedisConnection, keys: Keys): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  const scanFrom = (cursor: string): Promise<ScanAnswer> =>
    connection.call((redis) => redis.hscan(keys.table, cursor, 'COUNT', ENTRIES_PER_SCAN));
  for (let scanning: Promise<ScanAnswer> | undefined = scanFrom('0'); scanning !== undefined; ) {
    const [next, fields]: ScanAnswer = await scanning;
    // Redis looks for the next ones while these are read.
    scanning = next === '0' ? undefined : scanFrom(next);
    for (let index = 0; index + 1 < fields.length; index += 2) {
      found.set(fields[index] ?? '', decodeEntry(fields[index + 1] ?? '') ?? 'unreadable');
    }
  }
  return found;
}

type ScanAnswer = [next: string, fields: string[]];
type Found = Entry | 'unreadable';

/** `again`: what was scanned is not of the history that `from` is in. */
async function catchUp(
  connection: RedisConnection,
  keys: Keys,
  { from, found }: { readonly from: Position; readonly found: Map<string, Found> },
): Promise<TableCopy | undefined | 'again'> {
  const [metaNow, stream] = await connection.call((redis) =>
    atOnce(redis, (all) => all.hmget(keys.meta, ...META_FIELDS).xrange(keys.changes, `(${from.revision}-0`, '+')),
  );
  let { epoch, revision, id }: Position = from;
  for (const streamEntry of stream as StreamEntry[]) {
    const next = decodeRevision(streamEntry);
    if (!isNext({ epoch, revision, id }, next)) return 'again';
    ({ epoch, revision, id } = next.position);
    for (const change of next.changes) {
      if (change.kind === 'put') found.set(change.entry.id, change.entry);
      else found.delete(change.id);
    }
    for (const unreadable of next.unreadable) found.set(unreadable, 'unreadable');
  }
  const position = { epoch, revision, id };
  const meta = decodeMeta(metaNow);
  if (!isSamePosition(meta, position)) return 'again';
  return meta?.complete === true ? copyOf(found, position) : undefined;
}

function copyOf(found: ReadonlyMap<string, Found>, position: Position): TableCopy {
  const { entries, unreadable } = readableOf(found);
  return { table: { entries }, position, unreadable };
}

function readableOf(found: ReadonlyMap<string, Found>): { entries: Map<string, Entry>; unreadable: string[] } {
  const entries = new Map<string, Entry>();
  const unreadable: string[] = [];
  for (const [id, entry] of found) {
    if (entry === 'unreadable') unreadable.push(id);
    else entries.set(id, entry);
  }
  return { entries, unreadable };
}
