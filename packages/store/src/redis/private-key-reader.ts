import { type CertificateEntry, decodeEntry } from '@weir/model/data-plane';
import type { Logger } from '@weir/runtime';
import type { Redis } from 'ioredis';
import { StoreError } from '../errors.ts';
import { runTransaction } from './connection/pipeline.ts';
import { isPermissionDenied } from './connection/redis-errors.ts';
import type { Keys } from './keys.ts';
import { type JoinedCertificate, withPrivateKey } from './table-codec.ts';

/** None: the certificates are wanted without their keys, which are not asked for. */
export type PrivateKeyAccess = 'read' | 'none';

/** How a connection is asked: each has its own way of failing. */
export type RedisCaller = <T>(send: (redis: Redis) => Promise<T>) => Promise<T>;

export interface PrivateKeyReaderOptions {
  readonly keys: Keys;
  readonly access: PrivateKeyAccess;
  readonly log: Logger;
  /** Host and port of the Redis, for people. */
  readonly where: string;
}

/** A chain and a key weigh some kilobytes. */
const KEYS_PER_READ = 500;

type HashField = string | null | undefined;

/**
 * Puts the keys to the certificates. A Redis that does not let us read them costs the certificates, which then count as unreadable, and
 * nothing else: it is said once.
 */
export class PrivateKeyReader {
  readonly #options: PrivateKeyReaderOptions;
  #isRefused = false;

  constructor(options: PrivateKeyReaderOptions) {
    this.#options = options;
  }

  /** Whether Redis did not let us, the last time that it was asked. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Each certificate with its key or why not, in their order. Only later than the position that they are of. */
  async join(ask: RedisCaller, certificates: readonly CertificateEntry[]): Promise<readonly JoinedCertificate[]> {
    if (certificates.length === 0 || this.#options.access === 'none') return certificates;
    const { keys: hash, table } = this.#options.keys;
    const found = await this.#read(ask, certificates, async (redis, ids) => redis.hmget(hash, ...ids));
    const joined = certificates.map((certificate, index) => withPrivateKey(certificate, found[index]) ?? 'unreadable');
    const doubtful = certificates.filter((_, index) => joined[index] === 'unreadable');
    if (doubtful.length === 0 || this.#isRefused) return joined;
    // Now at one moment with the entries: a key that does not fit the entry beside it is lost, any other is of a later revision.
    const present = await this.#read(ask, doubtful, async (redis, ids) => {
      const [texts, keys] = await runTransaction(redis, (all) => all.hmget(table, ...ids).hmget(hash, ...ids));
      return ids.map(
        (_, index): StoredCertificate => ({ entry: (texts as HashField[])[index], key: (keys as HashField[])[index] }),
      );
    });
    const outcomes = new Map(
      doubtful.map((certificate, index) => [certificate, joinStored(certificate, present[index])]),
    );
    return joined.map((each, index) => {
      const certificate = certificates[index];
      return each !== 'unreadable' || certificate === undefined ? each : (outcomes.get(certificate) ?? each);
    });
  }

  /** Asks for a key that is not there: after it `isRefused` is of now. */
  async probe(ask: RedisCaller): Promise<void> {
    await this.#unlessRefused(ask, (redis) => redis.hmget(this.#options.keys.keys, ''));
  }

  /** What `send` reads of each certificate; nothing where Redis does not let us. */
  async #read<T>(
    ask: RedisCaller,
    certificates: readonly CertificateEntry[],
    send: (redis: Redis, ids: string[]) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const read: T[] = [];
    for (let begin = 0; begin < certificates.length; begin += KEYS_PER_READ) {
      const ids = certificates.slice(begin, begin + KEYS_PER_READ).map(({ id }) => id);
      const part = await this.#unlessRefused(ask, (redis) => send(redis, ids));
      if (part === undefined) return [];
      read.push(...part);
    }
    return read;
  }

  async #unlessRefused<T>(ask: RedisCaller, send: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    const { keys, log, where } = this.#options;
    const answer = await ask(async (redis): Promise<{ readonly value: T } | { readonly refusal: unknown }> => {
      try {
        return { value: await send(redis) };
      } catch (thrown) {
        if (!isPermissionDenied(thrown)) throw thrown;
        return { refusal: thrown };
      }
    });
    const wasRefused = this.#isRefused;
    this.#isRefused = 'refusal' in answer;
    if ('value' in answer) {
      if (wasRefused) log.info('private keys may be read again');
      return answer.value;
    }
    if (!wasRefused) {
      const message = `Redis at ${where} does not permit this user to read private keys; extend its ACL by %R~${keys.keys}`;
      const err = new StoreError('REFUSED', message, { cause: answer.refusal });
      log.warn({ err }, 'certificates cannot be used without their keys; all else is');
    }
    return undefined;
  }
}

/** As much of it as reading the table uses. */
export type PrivateKeyJoiner = Pick<PrivateKeyReader, 'isRefused' | 'join' | 'probe'>;

/** Of one certificate at one moment. */
interface StoredCertificate {
  readonly entry: HashField;
  readonly key: HashField;
}

function joinStored(certificate: CertificateEntry, present: StoredCertificate | undefined): JoinedCertificate {
  const joined = withPrivateKey(certificate, present?.key);
  if (joined !== undefined || present === undefined) return joined ?? 'unreadable';
  const now = decodeEntry(present.entry ?? '');
  const isStill = now?.kind === 'certificate' && now.keyDigest === certificate.keyDigest;
  return isStill ? 'unreadable' : 'superseded';
}
