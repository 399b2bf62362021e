import { type CertificateEntry, decodeEntry } from '@weir/model/data-plane';
import type { Logger } from '@weir/runtime';
import type { Redis } from 'ioredis';
import { StoreError } from '../errors.ts';
import { runTransaction } from './connection/pipeline.ts';
import { isPermissionDenied } from './connection/redis-errors.ts';
import type { Keys } from './keys.ts';
import { type JoinedCertificate, withPrivateKey } from './table-codec.ts';

/** Whether private keys are read. With `none`, certificates are returned without private keys. */
export type PrivateKeyAccess = 'read' | 'none';

/**
 * Runs `send` on a connection. `RedisCalls.call` also maps errors to `StoreError`s; the function that a follower passes leaves errors
 * unchanged.
 */
export type RedisCaller = <T>(send: (redis: Redis) => Promise<T>) => Promise<T>;

export interface PrivateKeyReaderOptions {
  readonly keys: Keys;
  readonly access: PrivateKeyAccess;
  readonly log: Logger;
  /** Host and port of the Redis, for messages. */
  readonly where: string;
}

/** The maximum number of private keys in a reply. Bounds the size of the reply, because a sealed private key takes some kilobytes. */
const KEYS_PER_READ = 500;

type HashField = string | null | undefined;

/**
 * Adds private keys to certificates. If the Redis user may not read private keys, logs one warning and treats certificates as unreadable;
 * all other entries stay readable.
 */
export class PrivateKeyReader {
  readonly #options: PrivateKeyReaderOptions;
  #isRefused = false;

  constructor(options: PrivateKeyReaderOptions) {
    this.#options = options;
  }

  /** Whether Redis refused the last read of private keys, because the ACL does not permit it. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /**
   * Returns each certificate with its private key, or `superseded` or `unreadable`, in the given order. Read the certificates before
   * calling this method, so that a stored key is never older than its certificate.
   */
  async join(call: RedisCaller, certificates: readonly CertificateEntry[]): Promise<readonly JoinedCertificate[]> {
    if (certificates.length === 0 || this.#options.access === 'none') return certificates;
    const { keys: hash, table } = this.#options.keys;
    const keyTexts = await this.#read(call, certificates, async (redis, ids) => redis.hmget(hash, ...ids));
    const joined = certificates.map(
      (certificate, index) => withPrivateKey(certificate, keyTexts[index]) ?? 'unreadable',
    );
    const mismatched = certificates.filter((_, index) => joined[index] === 'unreadable');
    if (mismatched.length === 0 || this.#isRefused) return joined;
    // Reads entries and keys in one transaction. If the entry is still the given certificate, its private key is lost. Otherwise a later
    // revision replaced or deleted the certificate.
    const stored = await this.#read(call, mismatched, async (redis, ids) => {
      const [texts, keys] = await runTransaction(redis, (all) => all.hmget(table, ...ids).hmget(hash, ...ids));
      return ids.map(
        (_, index): StoredCertificate => ({ entry: (texts as HashField[])[index], key: (keys as HashField[])[index] }),
      );
    });
    const outcomes = new Map(
      mismatched.map((certificate, index) => [certificate, joinStored(certificate, stored[index])]),
    );
    return joined.map((result, index) => {
      const certificate = certificates[index];
      return result !== 'unreadable' || certificate === undefined ? result : (outcomes.get(certificate) ?? result);
    });
  }

  /** Updates `isRefused` by reading a private key that does not exist. */
  async probe(call: RedisCaller): Promise<void> {
    await this.#unlessRefused(call, (redis) => redis.hmget(this.#options.keys.keys, ''));
  }

  /** Returns the results of `send` for all certificates, in order, or an empty list if Redis refuses a read. */
  async #read<T>(
    call: RedisCaller,
    certificates: readonly CertificateEntry[],
    send: (redis: Redis, ids: string[]) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const results: T[] = [];
    for (let begin = 0; begin < certificates.length; begin += KEYS_PER_READ) {
      const ids = certificates.slice(begin, begin + KEYS_PER_READ).map(({ id }) => id);
      const batch = await this.#unlessRefused(call, (redis) => send(redis, ids));
      if (batch === undefined) return [];
      results.push(...batch);
    }
    return results;
  }

  async #unlessRefused<T>(call: RedisCaller, send: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    const { keys, log, where } = this.#options;
    const result = await call(async (redis): Promise<{ readonly value: T } | { readonly refusal: unknown }> => {
      try {
        return { value: await send(redis) };
      } catch (thrown) {
        if (!isPermissionDenied(thrown)) throw thrown;
        return { refusal: thrown };
      }
    });
    const wasRefused = this.#isRefused;
    this.#isRefused = 'refusal' in result;
    if ('value' in result) {
      if (wasRefused) log.info('private keys are readable again');
      return result.value;
    }
    if (!wasRefused) {
      const message = `Redis at ${where} does not permit this user to read private keys; add %R~${keys.keys} to its ACL`;
      const err = new StoreError('REFUSED', message, { cause: result.refusal });
      log.warn({ err }, 'failed to read private keys; certificates are unavailable, everything else works');
    }
    return undefined;
  }
}

/** The part of `PrivateKeyReader` that the table reader uses. Tests replace this part. */
export type PrivateKeyJoiner = Pick<PrivateKeyReader, 'isRefused' | 'join' | 'probe'>;

/** The entry and the private key of one certificate, read at one moment. */
interface StoredCertificate {
  readonly entry: HashField;
  readonly key: HashField;
}

function joinStored(certificate: CertificateEntry, stored: StoredCertificate | undefined): JoinedCertificate {
  const joined = withPrivateKey(certificate, stored?.key);
  if (joined !== undefined || stored === undefined) return joined ?? 'unreadable';
  const current = decodeEntry(stored.entry ?? '');
  const isCurrent = current?.kind === 'certificate' && current.keyDigest === certificate.keyDigest;
  return isCurrent ? 'unreadable' : 'superseded';
}
