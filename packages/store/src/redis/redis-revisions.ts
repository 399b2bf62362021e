import type { Entry, TablePosition } from '@weir/model/data-plane';
import type { Redis } from 'ioredis';
import type { Revision } from '../contract.ts';
import { StoreError } from '../error.ts';
import { describePosition, isNext, isSamePosition } from '../position.ts';
import { certificatesIn, type JoinedCertificate, withJoinedCertificates } from './certificate-keys.ts';
import type { PrivateKeyJoiner, RedisCaller } from './key-reader.ts';
import type { Keys } from './keys.ts';
import type { TableSource } from './read-table.ts';
import { decodeMeta, decodeRevision, META_FIELDS, type StreamEntry } from './table-codec.ts';
import { runTransaction } from './transaction.ts';

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
