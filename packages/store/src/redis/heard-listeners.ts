import type { ListenerReport } from '@weir/model/data-plane';
import type { RedisConnection } from './connection.ts';

/** The listeners of one proxy as they were read last. */
interface CachedReports {
  readonly root: string;
  readonly chunks: ReadonlyMap<string, readonly ListenerReport[]>;
  readonly listeners: readonly ListenerReport[];
}

/** Listeners of proxies that were read, by the key of the proxy: what it says again is not read again, and is the same list. */
export class ListenerReportCache {
  readonly #connection: RedisConnection;
  readonly #reportsByKey = new Map<string, CachedReports>();

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** Those of this root or, if the proxy has gone on meanwhile, newer ones; undefined: it is gone, or cannot be read. */
  async read(key: string, root: string): Promise<readonly ListenerReport[] | undefined> {
    const before = this.#reportsByKey.get(key);
    if (before?.root === root) return before.listeners;
    const heard = (await this.#readChanged(key, root, before)) ?? (await this.#readAll(key));
    if (heard !== undefined) this.#reportsByKey.set(key, heard);
    return heard?.listeners;
  }

  /** All others are gone. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#reportsByKey.keys()) if (!keys.has(key)) this.#reportsByKey.delete(key);
  }

  /** Reads what is not known yet; undefined: nothing was known, or it changed while it was read. */
  async #readChanged(key: string, root: string, before: CachedReports | undefined): Promise<CachedReports | undefined> {
    if (before === undefined) return undefined;
    const text = await this.#connection.call((redis) => redis.hget(key, 'digests'));
    const digests = parseDigests(text);
    if (digests === undefined) return undefined;
    const missing = digests.flatMap((digest, index) => (before.chunks.has(digest) ? [] : [index]));
    const [rootNow, textNow, ...chunks] = await this.#connection.call((redis) =>
      redis.hmget(key, 'root', 'digests', ...missing.map((index) => `chunk:${index}`)),
    );
    // Both: it may have said something else in between, and now the same as before again.
    if (rootNow !== root || textNow !== text) return undefined;
    const texts = new Map(missing.map((index, nth) => [index, chunks[nth]]));
    return assembleReports(
      root,
      digests,
      (digest, index) => before.chunks.get(digest) ?? parseReports(texts.get(index)),
    );
  }

  /** At one moment. */
  async #readAll(key: string): Promise<CachedReports | undefined> {
    const hash: Record<string, string> = await this.#connection.call((redis) => redis.hgetall(key));
    const digests = parseDigests(hash.digests);
    if (hash.root === undefined || digests === undefined) return undefined;
    return assembleReports(hash.root, digests, (_, index) => parseReports(hash[`chunk:${index}`]));
  }
}

function assembleReports(
  root: string,
  digests: readonly string[],
  chunkOf: (digest: string, index: number) => readonly ListenerReport[] | undefined,
): CachedReports | undefined {
  const chunks = new Map<string, readonly ListenerReport[]>();
  const listeners: ListenerReport[] = [];
  for (const [index, digest] of digests.entries()) {
    const chunk = chunkOf(digest, index);
    if (chunk === undefined) return undefined;
    chunks.set(digest, chunk);
    listeners.push(...chunk);
  }
  return { root, chunks, listeners: Object.freeze(listeners) };
}

function parseDigests(text: string | null | undefined): string[] | undefined {
  const digests = parseJson(text);
  return Array.isArray(digests) && digests.every((digest) => typeof digest === 'string') ? digests : undefined;
}

function parseReports(text: string | null | undefined): ListenerReport[] | undefined {
  const reports = parseJson(text);
  return Array.isArray(reports) ? reports : undefined;
}

function parseJson(text: string | null | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
