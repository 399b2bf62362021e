import type { Entry, Position } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { Revision } from '../contract.ts';
import { StoreError } from '../error.ts';
import { describePosition, isNext, isSamePosition } from '../position.ts';
import { certificatesIn, type Joined, revisionWith } from './certificate-keys.ts';
import type { Ask, KeyJoiner } from './key-reader.ts';
import type { Keys } from './keys.ts';
import type { TableSource } from './read-table.ts';
import { decodeMeta, decodeRevision, META_FIELDS, type StreamEntry } from './table-codec.ts';
import { atOnce } from './transaction.ts';

/** How often a follower to whom nothing comes looks whether its revision is still the last one. */
const LOOK_MS = 500;
/** Each may be a megabyte. */
const REVISIONS_PER_READ = 20;

/**
 * The revisions after `after`. The stream alone does not tell of a roll back or a new epoch, whose numbers begin again below
 * ours: so it compares with `meta`, at first and whenever nothing came for a while.
 */
export async function* revisionsOf(
  redis: Redis,
  { keys, keyReader }: Pick<TableSource, 'keys' | 'keyReader'>,
  after: Position,
): AsyncGenerator<Revision> {
  const ask: Ask = (send) => send(redis);
  let last = after;
  let lacksKeys = keyReader.isRefused;
  let entries = await look(redis, keys, last);
  for (;;) {
    const revisions = await withKeys(ask, keyReader, entries.map(decodeRevision));
    // Certificates that were left out come with no revision.
    if (lacksKeys && !keyReader.isRefused) throw new StoreError('GAP', 'private keys may be read again');
    lacksKeys = keyReader.isRefused;
    for (const revision of revisions) {
      if (!isNext(last, revision)) throw gap(last, revision.position);
      last = revision.position;
      yield revision;
    }
    entries = (await listen(redis, keys, last)) ?? (await look(redis, keys, last));
    if (lacksKeys) await keyReader.probe(ask);
  }
}

async function withKeys(ask: Ask, keyReader: KeyJoiner, revisions: readonly Revision[]): Promise<readonly Revision[]> {
  const certificates = certificatesIn(revisions);
  if (certificates.length === 0) return revisions;
  const outcomes = await keyReader.join(ask, certificates);
  const joined = new Map<Entry, Joined>();
  for (const [index, outcome] of outcomes.entries()) {
    const certificate = certificates[index];
    if (certificate !== undefined) joined.set(certificate, outcome);
  }
  return revisions.map((revision) => revisionWith(revision, joined));
}

/** Waits for what comes next in the stream; undefined: nothing came. */
async function listen(redis: Redis, keys: Keys, last: Position): Promise<StreamEntry[] | undefined> {
  const id = `${last.revision}-0`;
  const answer = await redis.xread('COUNT', REVISIONS_PER_READ, 'BLOCK', LOOK_MS, 'STREAMS', keys.changes, id);
  return answer?.[0]?.[1];
}

/** What there is now; throws GAP when that is nothing, and `last` is not where the table is. */
async function look(redis: Redis, keys: Keys, last: Position): Promise<StreamEntry[]> {
  const [meta, entries] = await atOnce(redis, (all) =>
    all.hmget(keys.meta, ...META_FIELDS).xrange(keys.changes, `(${last.revision}-0`, '+', 'COUNT', REVISIONS_PER_READ),
  );
  const streamed = entries as StreamEntry[];
  const now = decodeMeta(meta);
  if (streamed.length === 0 && !isSamePosition(now, last)) throw gap(last, now);
  return streamed;
}

function gap(last: Position, now: Position | undefined): StoreError {
  return new StoreError('GAP', `the table went from ${describePosition(last)} to ${describePosition(now)}`);
}
