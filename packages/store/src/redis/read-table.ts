import {
  type CertificateEntry,
  decodeEntry,
  type Entry,
  type RoutingTable,
  type TablePosition,
} from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { Revision, TableSnapshot } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { describePosition, isNext, isSamePosition } from '../position.ts';
import { runTransaction } from './connection/pipeline.ts';
import type { RedisConnection } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';
import type { PrivateKeyJoiner, RedisCaller } from './private-key-reader.ts';
import {
  certificatesIn,
  decodeMeta,
  decodeRevision,
  type JoinedCertificate,
  META_FIELDS,
  type StreamEntry,
  withJoinedCertificates,
} from './table-codec.ts';

const MAX_READ_ATTEMPTS = 5;
/** How often the keys are run after while they are replaced: then what is not at hand counts as unreadable, until its revision comes. */
const MAX_KEY_ROUNDS = 5;
const ENTRIES_PER_SCAN = 1_000;

export interface TableSource {
  readonly connection: RedisConnection;
  readonly keys: Keys;
  readonly keyReader: PrivateKeyJoiner;
}

/**
 * The whole table at one position, while it may be published on: what HSCAN saw is each entry at some revision since the one
 * read before it, and the changes since then, applied in order, make all of them the last. Undefined: none is whole.
 */
export async function readTable(source: TableSource): Promise<TableSnapshot | undefined> {
  const { connection, keys } = source;
  for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt += 1) {
    const meta = decodeMeta(await connection.call((redis) => redis.hmget(keys.meta, ...META_FIELDS)));
    if (meta === undefined || !meta.complete) return undefined;
    const found = await scanEntries(source);
    const outcome = await snapshotFrom(source, meta, found);
    if (outcome !== 'again') return outcome;
  }
  throw new StoreError('AWAY', 'the table was begun anew each time that it was read; it is read again');
}

/** What lies there, whole or not. */
export async function readPartialTable(source: TableSource): Promise<RoutingTable | undefined> {
  const found = await scanEntries(source);
  for (const { id } of await joinPrivateKeys(source, found)) found.set(id, 'unreadable');
  const { entries } = splitReadable(found);
  return entries.size === 0 ? undefined : { entries };
}

async function scanEntries({ connection, keys }: TableSource): Promise<Map<string, ScannedEntry>> {
  const found = new Map<string, ScannedEntry>();
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
type ScannedEntry = Entry | 'unreadable';

/** Keys are read after the position, and so may be of a later one: then the table is taken there, too. */
async function snapshotFrom(
  source: TableSource,
  from: TablePosition,
  found: Map<string, ScannedEntry>,
): Promise<TableSnapshot | undefined | 'again'> {
  let position = from;
  for (let round = 1; ; round += 1) {
    const now = await catchUp(source, { from: position, found });
    if (now === undefined || now === 'again') return now;
    position = now;
    const superseded = await joinPrivateKeys(source, found);
    if (superseded.length > 0 && round < MAX_KEY_ROUNDS) continue;
    for (const { id } of superseded) found.set(id, 'unreadable');
    const { entries, unreadable } = splitReadable(found);
    return { table: { entries }, position, unreadable };
  }
}

/** Brings `found` to where the table is now. `again`: what was scanned is not of the history that `from` is in. */
async function catchUp(
  { connection, keys }: TableSource,
  { from, found }: { readonly from: TablePosition; readonly found: Map<string, ScannedEntry> },
): Promise<TablePosition | undefined | 'again'> {
  const [metaNow, stream] = await connection.call((redis) =>
    runTransaction(redis, (all) =>
      all.hmget(keys.meta, ...META_FIELDS).xrange(keys.changes, `(${from.revision}-0`, '+'),
    ),
  );
  let { epoch, revision, id }: TablePosition = from;
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
  return meta?.complete === true ? position : undefined;
}

/** Puts the keys to those certificates that have none yet; returns those that a later revision has replaced. */
async function joinPrivateKeys(
  { connection, keyReader }: TableSource,
  found: Map<string, ScannedEntry>,
): Promise<readonly CertificateEntry[]> {
  const certificates: CertificateEntry[] = [];
  for (const entry of found.values()) {
    if (entry !== 'unreadable' && entry.kind === 'certificate' && entry.sealedKey === undefined)
      certificates.push(entry);
  }
  const outcomes = await keyReader.join((send) => connection.call(send), certificates);
  return certificates.filter((certificate, index) => {
    const outcome = outcomes[index] ?? 'unreadable';
    if (outcome !== 'superseded') found.set(certificate.id, outcome);
    return outcome === 'superseded';
  });
}

function splitReadable(found: ReadonlyMap<string, ScannedEntry>): {
  entries: Map<string, Entry>;
  unreadable: string[];
} {
  const entries = new Map<string, Entry>();
  const unreadable: string[] = [];
  for (const [id, entry] of found) {
    if (entry === 'unreadable') unreadable.push(id);
    else entries.set(id, entry);
  }
  return { entries, unreadable };
}

/** How often a follower to whom nothing comes looks whether its revision is still the last one. */
const POLL_INTERVAL_MS = 500;
/** Each may be a megabyte. */
const REVISIONS_PER_READ = 20;

/**
 * The revisions after `after`. The stream alone does not tell of a roll back or a new epoch, whose numbers begin again below
 * ours: so it compares with `meta`, at first and whenever nothing came for a while.
 */
export async function* readRevisions(
  redis: Redis,
  { keys, keyReader }: Pick<TableSource, 'keys' | 'keyReader'>,
  after: TablePosition,
): AsyncGenerator<Revision> {
  const ask: RedisCaller = (send) => send(redis);
  let last = after;
  let lacksKeys = keyReader.isRefused;
  let entries = await readAvailable(redis, keys, last);
  for (;;) {
    const revisions = await joinRevisionKeys(ask, keyReader, entries.map(decodeRevision));
    // Certificates that were left out come with no revision.
    if (lacksKeys && !keyReader.isRefused) throw new StoreError('GAP', 'private keys may be read again');
    lacksKeys = keyReader.isRefused;
    for (const revision of revisions) {
      if (!isNext(last, revision)) throw gapError(last, revision.position);
      last = revision.position;
      yield revision;
    }
    entries = (await waitForRevisions(redis, keys, last)) ?? (await readAvailable(redis, keys, last));
    if (lacksKeys) await keyReader.probe(ask);
  }
}

async function joinRevisionKeys(
  ask: RedisCaller,
  keyReader: PrivateKeyJoiner,
  revisions: readonly Revision[],
): Promise<readonly Revision[]> {
  const certificates = certificatesIn(revisions);
  if (certificates.length === 0) return revisions;
  const outcomes = await keyReader.join(ask, certificates);
  const joined = new Map<Entry, JoinedCertificate>();
  for (const [index, outcome] of outcomes.entries()) {
    const certificate = certificates[index];
    if (certificate !== undefined) joined.set(certificate, outcome);
  }
  return revisions.map((revision) => withJoinedCertificates(revision, joined));
}

/** Waits for what comes next in the stream; undefined: nothing came. */
async function waitForRevisions(redis: Redis, keys: Keys, last: TablePosition): Promise<StreamEntry[] | undefined> {
  const id = `${last.revision}-0`;
  const answer = await redis.xread('COUNT', REVISIONS_PER_READ, 'BLOCK', POLL_INTERVAL_MS, 'STREAMS', keys.changes, id);
  return answer?.[0]?.[1];
}

/** What there is now; throws GAP when that is nothing, and `last` is not where the table is. */
async function readAvailable(redis: Redis, keys: Keys, last: TablePosition): Promise<StreamEntry[]> {
  const [meta, entries] = await runTransaction(redis, (all) =>
    all.hmget(keys.meta, ...META_FIELDS).xrange(keys.changes, `(${last.revision}-0`, '+', 'COUNT', REVISIONS_PER_READ),
  );
  const streamed = entries as StreamEntry[];
  const now = decodeMeta(meta);
  if (streamed.length === 0 && !isSamePosition(now, last)) throw gapError(last, now);
  return streamed;
}

function gapError(last: TablePosition, now: TablePosition | undefined): StoreError {
  return new StoreError('GAP', `the table went from ${describePosition(last)} to ${describePosition(now)}`);
}
