import { createHash } from 'node:crypto';
import { hashText, type ListenerReport } from '@weir/model/data-plane';
import type { RedisConnection } from './connection/redis-connection.ts';

// The listeners of a proxy in chunks, so that one of many thousands that changes costs its chunk: in what is sent, and in what is
// read. Which chunk one is in follows from its id alone, so that others stay where they are when it comes or goes.
export interface ListenerChunks {
  readonly listeners: readonly ListenerReport[];
  readonly chunks: readonly ListenerChunk[];
  /** Digest of the digests. */
  readonly root: string;
}

export interface ListenerChunk {
  readonly reports: readonly ListenerReport[];
  readonly text: string;
  readonly digest: string;
}

const TARGET_CHUNK_SIZE = 100;
/** Another number of chunks is another chunk for everybody: so it stays while they are anything like the wanted size. */
const MAX_MEAN_CHUNK_SIZE = 200;
const MIN_MEAN_CHUNK_SIZE = 25;

/** `before`: the last ones, of which those that say the same are taken over. */
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
  const isFine =
    before !== undefined &&
    listeners <= MAX_MEAN_CHUNK_SIZE * before &&
    (before === 1 || listeners >= MIN_MEAN_CHUNK_SIZE * before);
  return isFine ? before : 2 ** Math.max(0, Math.ceil(Math.log2(listeners / TARGET_CHUNK_SIZE)));
}

function chunkOf(reports: readonly ListenerReport[]): ListenerChunk {
  const text = JSON.stringify(reports);
  return { reports, text, digest: digestOf(text) };
}

/** Of two equal ones nothing is sent, so they must be hard to make on purpose: 96 bits of SHA-256. */
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
