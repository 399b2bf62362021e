// Splits the listener reports of a proxy into chunks. A proxy may have many thousands of reports, but one changed report costs only one
// chunk on write (`chunkListeners`) and on read (`ListenerReportCache`). The hash of a report's id determines the report's chunk, so
// that a new or removed report does not move other reports.
import { createHash } from 'node:crypto';
import { hashText, type ListenerReport } from '@weir/model/data-plane';
import type { RedisCalls } from './connection/redis-connection.ts';

export interface ListenerChunks {
  readonly listeners: readonly ListenerReport[];
  readonly chunks: readonly ListenerChunk[];
  /** The digest of all chunks: the digest of their digests. */
  readonly root: string;
}

export interface ListenerChunk {
  readonly reports: readonly ListenerReport[];
  readonly text: string;
  readonly digest: string;
}

const TARGET_CHUNK_SIZE = 100;
/**
 * The number of chunks changes only if the mean number of reports per chunk is above this maximum or below `MIN_MEAN_CHUNK_SIZE`, because a
 * new number of chunks moves almost every report to another chunk.
 */
const MAX_MEAN_CHUNK_SIZE = 200;
const MIN_MEAN_CHUNK_SIZE = 25;

/** Splits `listeners` into chunks. Reuses the unchanged chunks of `before`, which are the chunks of the last heartbeat. */
export function chunkListeners(
  listeners: readonly ListenerReport[],
  before: ListenerChunks | undefined,
): ListenerChunks {
  if (before?.listeners === listeners) return before;
  const count = chunkCountFor(listeners.length, before?.chunks.length);
  const groups = Array.from({ length: count }, (): ListenerReport[] => []);
  for (const report of listeners) groups[hashText(report.id, 0) % count]?.push(report);
  const chunks = groups.map((reports, index) => {
    const old = before?.chunks.length === count ? before.chunks[index] : undefined;
    return old !== undefined && isSame(old.reports, reports) ? old : chunkOf(reports);
  });
  return { listeners: listeners, chunks, root: digestOf(chunks.map(({ digest }) => digest).join(' ')) };
}

function chunkCountFor(listeners: number, before: number | undefined): number {
  const isSizeInRange =
    before !== undefined &&
    listeners <= MAX_MEAN_CHUNK_SIZE * before &&
    (before === 1 || listeners >= MIN_MEAN_CHUNK_SIZE * before);
  return isSizeInRange ? before : 2 ** Math.max(0, Math.ceil(Math.log2(listeners / TARGET_CHUNK_SIZE)));
}

function chunkOf(reports: readonly ListenerReport[]): ListenerChunk {
  const text = JSON.stringify(reports);
  return { reports, text, digest: digestOf(text) };
}

/**
 * Returns 96 bits of the SHA-256 hash. An attacker must not be able to produce a collision, because a chunk with a known digest is not
 * sent.
 */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64').slice(0, 16);
}

function isSame(a: readonly ListenerReport[], b: readonly ListenerReport[]): boolean {
  return (
    a.length === b.length &&
    a.every((report, index) => {
      const other = b[index];
      return (
        report === other ||
        (report.id === other?.id &&
          report.service === other.service &&
          report.bound === other.bound &&
          report.listening === other.listening &&
          report.error === other.error)
      );
    })
  );
}

/** The listener reports of one proxy at the last read. */
interface CachedReports {
  readonly root: string;
  readonly chunks: ReadonlyMap<string, readonly ListenerReport[]>;
  readonly listeners: readonly ListenerReport[];
}

/** Caches the listener reports of proxies. Reads only changed chunks, and returns the same array while a proxy's reports are unchanged. */
export class ListenerReportCache {
  readonly #connection: RedisCalls;
  readonly #reportsByKey = new Map<string, CachedReports>();

  constructor(connection: RedisCalls) {
    this.#connection = connection;
  }

  /**
   * Returns the reports with the digest `root`, or newer reports. Returns undefined if the proxy's heartbeat has expired or its reports
   * cannot be decoded.
   */
  async read(key: string, root: string): Promise<readonly ListenerReport[] | undefined> {
    const before = this.#reportsByKey.get(key);
    if (before?.root === root) return before.listeners;
    const reports = (await this.#readChanged(key, root, before)) ?? (await this.#readAll(key));
    if (reports !== undefined) this.#reportsByKey.set(key, reports);
    return reports?.listeners;
  }

  /** Removes the cached reports of all proxies whose key is not in `keys`. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#reportsByKey.keys()) if (!keys.has(key)) this.#reportsByKey.delete(key);
  }

  /**
   * Reads only the chunks that are not cached. Returns undefined if no reports of the proxy are cached, or if the reports changed during
   * the read.
   */
  async #readChanged(key: string, root: string, before: CachedReports | undefined): Promise<CachedReports | undefined> {
    if (before === undefined) return undefined;
    const text = await this.#connection.call((redis) => redis.hget(key, 'digests'));
    const digests = parseDigests(text);
    if (digests === undefined) return undefined;
    const missing = digests.flatMap((digest, index) => (before.chunks.has(digest) ? [] : [index]));
    const [rootNow, textNow, ...chunks] = await this.#connection.call((redis) =>
      redis.hmget(key, 'root', 'digests', ...missing.map((index) => `chunk:${index}`)),
    );
    // Compares the digests too, because the first read may have returned the digests of other reports that were replaced since.
    if (rootNow !== root || textNow !== text) return undefined;
    const texts = new Map(missing.map((index, position) => [index, chunks[position]]));
    return assembleReports(
      root,
      digests,
      (digest, index) => before.chunks.get(digest) ?? parseReports(texts.get(index)),
    );
  }

  /** Reads all chunks with one command, and therefore at one moment. */
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
