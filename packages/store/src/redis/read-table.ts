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
import type { RedisCalls } from './connection/redis-connection.ts';
import { readTogether } from './connection/scripts.ts';
import type { Keys } from './keys.ts';
import { PageSize } from './page-size.ts';
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
/**
 * The maximum number of times that `readTable` joins private keys while a leader replaces certificates. After the last time, a certificate
 * without its private key counts as unreadable until a follower receives the certificate's next revision.
 */
const MAX_KEY_ROUNDS = 5;

export interface TableSource {
  readonly connection: RedisCalls;
  readonly keys: Keys;
  readonly keyReader: PrivateKeyJoiner;
}

/**
 * Reads the complete table at one position while a leader may publish. HSCAN may return entries of different revisions, none of them older
 * than the position that was read first. Applying the changes since that position therefore brings all entries to the last revision.
 * Returns undefined if the stored table is incomplete. Throws `StoreError` AWAY if changes were trimmed or a new epoch was opened during
 * every attempt.
 */
export async function readTable(source: TableSource): Promise<TableSnapshot | undefined> {
  const { connection, keys } = source;
  for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt += 1) {
    const meta = decodeMeta(await connection.call((redis) => redis.hmget(keys.meta, ...META_FIELDS)));
    if (meta === undefined || !meta.complete) return undefined;
    const found = await scanEntries(source);
    const outcome = await snapshotFrom(source, meta, found);
    if (outcome !== 'retry') return outcome;
  }
  throw new StoreError('AWAY', 'the table was rewritten during each attempt to read it; retrying');
}

/** Reads the stored entries of a complete or incomplete table. Returns undefined if there are no readable entries. */
export async function readPartialTable(source: TableSource): Promise<RoutingTable | undefined> {
  const found = await scanEntries(source);
  for (const { id } of await joinPrivateKeys(source, found)) found.set(id, 'unreadable');
  const { entries } = splitReadable(found);
  return entries.size === 0 ? undefined : { entries };
}

async function scanEntries({ connection, keys }: TableSource): Promise<Map<string, ScannedEntry>> {
  const found = new Map<string, ScannedEntry>();
  const page = new PageSize({ first: 50, max: 1_000 });
  const scanFrom = (cursor: string): Promise<ScanReply> =>
    connection.call((redis) => redis.hscan(keys.table, cursor, 'COUNT', page.count));
  for (let scanning: Promise<ScanReply> | undefined = scanFrom('0'); scanning !== undefined; ) {
    const [next, fields]: ScanReply = await scanning;
    page.adapt({ items: fields.length / 2, bytes: lengthOf(fields) });
    // Requests the next page before decoding the current page, so that Redis and this process work in parallel.
    scanning = next === '0' ? undefined : scanFrom(next);
    for (let index = 0; index + 1 < fields.length; index += 2) {
      found.set(fields[index] ?? '', decodeEntry(fields[index + 1] ?? '') ?? 'unreadable');
    }
  }
  return found;
}

type ScanReply = [next: string, fields: string[]];

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

type ScannedEntry = Entry | 'unreadable';

/**
 * Brings the scanned entries to one position and adds their private keys. A key may be newer than its certificate; the function catches up
 * with the changes again in this case.
 */
async function snapshotFrom(
  source: TableSource,
  from: TablePosition,
  found: Map<string, ScannedEntry>,
): Promise<TableSnapshot | undefined | 'retry'> {
  let position = from;
  for (let round = 1; ; round += 1) {
    const current = await catchUp(source, { from: position, found });
    if (current === undefined || current === 'retry') return current;
    position = current;
    const superseded = await joinPrivateKeys(source, found);
    if (superseded.length > 0 && round < MAX_KEY_ROUNDS) continue;
    for (const { id } of superseded) found.set(id, 'unreadable');
    const { entries, unreadable } = splitReadable(found);
    return { table: { entries }, position, unreadable };
  }
}

/**
 * Applies the changes since `from` to `found`, and returns the new position. Returns `retry` if the stored changes do not continue from
 * `from`, because they were trimmed or wiped or a new epoch was opened. Returns undefined if the table is incomplete.
 */
async function catchUp(
  { connection, keys }: TableSource,
  { from, found }: { readonly from: TablePosition; readonly found: Map<string, ScannedEntry> },
): Promise<TablePosition | undefined | 'retry'> {
  const page = new PageSize(REVISIONS_PER_PAGE);
  let { epoch, revision, id }: TablePosition = from;
  for (;;) {
    const [metaNow, reply] = await connection.call((redis) =>
      readTogether(redis, [
        ['HMGET', keys.meta, ...META_FIELDS],
        ['XRANGE', keys.changes, `(${revision}-0`, '+', 'COUNT', page.count],
      ]),
    );
    const stream = reply as StreamEntry[];
    for (const streamEntry of stream) {
      const next = decodeRevision(streamEntry);
      if (!isNext({ epoch, revision, id }, next)) return 'retry';
      ({ epoch, revision, id } = next.position);
      for (const change of next.changes) {
        if (change.kind === 'put') found.set(change.entry.id, change.entry);
        else found.delete(change.id);
      }
      for (const unreadable of next.unreadable) found.set(unreadable, 'unreadable');
    }
    const isLastPage = stream.length < page.count;
    page.adapt(sizeOf(stream));
    if (!isLastPage) continue;
    const position = { epoch, revision, id };
    const meta = decodeMeta(metaNow);
    if (!isSamePosition(meta, position)) return 'retry';
    return meta?.complete === true ? position : undefined;
  }
}

/** The number of revisions in a reply. A revision may take a megabyte. */
const REVISIONS_PER_PAGE = { first: 8, max: 200 };

function sizeOf(stream: readonly StreamEntry[]): { readonly items: number; readonly bytes: number } {
  return { items: stream.length, bytes: stream.reduce((sum, [, fields]) => sum + lengthOf(fields), 0) };
}

/** Adds private keys to the certificates in `found`. Returns the certificates that a later revision has replaced or deleted. */
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

/** How long a follower waits for a revision before checking that the stored table is still at the follower's position. */
const POLL_INTERVAL_MS = 500;

/**
 * Yields the revisions after `after`. Compares the last position with `meta` at the start, and whenever no revision arrives within
 * `POLL_INTERVAL_MS`. XREAD does not return the revisions of a new epoch or of a rolled-back store, because their numbers are lower.
 */
export async function* readRevisions(
  redis: Redis,
  { keys, keyReader }: TableSource,
  after: TablePosition,
): AsyncGenerator<Revision> {
  const call: RedisCaller = (send) => send(redis);
  let last = after;
  let lacksKeys = keyReader.isRefused;
  const page = new PageSize(REVISIONS_PER_PAGE);
  let entries = await readAvailable(redis, keys, { last, count: page.count });
  for (;;) {
    page.adapt(sizeOf(entries));
    const revisions = await joinRevisionKeys(call, keyReader, entries.map(decodeRevision));
    // Requires a read of the complete table, because no later revision contains the certificates that were unreadable until now.
    if (lacksKeys && !keyReader.isRefused) throw new StoreError('GAP', 'private keys are readable again');
    lacksKeys = keyReader.isRefused;
    for (const revision of revisions) {
      if (!isNext(last, revision)) throw gapError(last, revision.position);
      last = revision.position;
      yield revision;
    }
    const { count } = page;
    entries =
      (await waitForRevisions(redis, keys, { last, count })) ?? (await readAvailable(redis, keys, { last, count }));
    if (lacksKeys) await keyReader.probe(call);
  }
}

async function joinRevisionKeys(
  call: RedisCaller,
  keyReader: PrivateKeyJoiner,
  revisions: readonly Revision[],
): Promise<readonly Revision[]> {
  const certificates = certificatesIn(revisions);
  if (certificates.length === 0) return revisions;
  const outcomes = await keyReader.join(call, certificates);
  const joined = new Map<Entry, JoinedCertificate>();
  for (const [index, outcome] of outcomes.entries()) {
    const certificate = certificates[index];
    if (certificate !== undefined) joined.set(certificate, outcome);
  }
  return revisions.map((revision) => withJoinedCertificates(revision, joined));
}

interface RevisionPage {
  readonly last: TablePosition;
  /** The maximum number of revisions to read. */
  readonly count: number;
}

/** Waits for the next revisions in the stream. Returns undefined if no revision arrives within `POLL_INTERVAL_MS`. */
async function waitForRevisions(
  redis: Redis,
  keys: Keys,
  { last, count }: RevisionPage,
): Promise<StreamEntry[] | undefined> {
  const id = `${last.revision}-0`;
  const reply = await redis.xread('COUNT', count, 'BLOCK', POLL_INTERVAL_MS, 'STREAMS', keys.changes, id);
  return reply?.[0]?.[1];
}

/** Returns the stored revisions after `last`. Throws GAP if there are no such revisions and the table is not at `last`. */
async function readAvailable(redis: Redis, keys: Keys, { last, count }: RevisionPage): Promise<StreamEntry[]> {
  const [meta, entries] = await readTogether(redis, [
    ['HMGET', keys.meta, ...META_FIELDS],
    ['XRANGE', keys.changes, `(${last.revision}-0`, '+', 'COUNT', count],
  ]);
  const streamed = entries as StreamEntry[];
  const current = decodeMeta(meta);
  if (streamed.length === 0 && !isSamePosition(current, last)) throw gapError(last, current);
  return streamed;
}

function gapError(last: TablePosition, current: TablePosition | undefined): StoreError {
  return new StoreError(
    'GAP',
    `the table moved from ${describePosition(last)} to ${describePosition(current)}, and the changes in between are missing or were rolled back`,
  );
}
