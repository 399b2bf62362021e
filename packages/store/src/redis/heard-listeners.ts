import type { ListenerReport } from '@weir/model/data-plane';
import type { RedisConnection } from './connection.ts';

/** The listeners of one proxy as they were read last. */
interface Heard {
  readonly root: string;
  readonly chunks: ReadonlyMap<string, readonly ListenerReport[]>;
  readonly listeners: readonly ListenerReport[];
}

/** Listeners of proxies that were read, by the key of the proxy: what it says again is not read again, and is the same list. */
export class HeardListeners {
  readonly #connection: RedisConnection;
  readonly #heard = new Map<string, Heard>();

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** Those of this root or, if the proxy has gone on meanwhile, newer ones; undefined: it is gone, or cannot be read. */
  async of(key: string, root: string): Promise<readonly ListenerReport[] | undefined> {
    const before = this.#heard.get(key);
    if (before?.root === root) return before.listeners;
    const heard = (await this.#changes(key, root, before)) ?? (await this.#whole(key));
    if (heard !== undefined) this.#heard.set(key, heard);
    return heard?.listeners;
  }

  /** All others are gone. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#heard.keys()) if (!keys.has(key)) this.#heard.delete(key);
  }

  /** Reads what is not known yet; undefined: nothing was known, or it changed while it was read. */
  async #changes(key: string, root: string, before: Heard | undefined): Promise<Heard | undefined> {
    if (before === undefined) return undefined;
    const text = await this.#connection.call((redis) => redis.hget(key, 'digests'));
    const digests = digestsOf(text);
    if (digests === undefined) return undefined;
    const missing = digests.flatMap((digest, index) => (before.chunks.has(digest) ? [] : [index]));
    const [rootNow, textNow, ...chunks] = await this.#connection.call((redis) =>
      redis.hmget(key, 'root', 'digests', ...missing.map((index) => `chunk:${index}`)),
    );
    // Both: it may have said something else in between, and now the same as before again.
    if (rootNow !== root || textNow !== text) return undefined;
    const texts = new Map(missing.map((index, nth) => [index, chunks[nth]]));
    return heardOf(root, digests, (digest, index) => before.chunks.get(digest) ?? reportsOf(texts.get(index)));
  }

  /** At one moment. */
  async #whole(key: string): Promise<Heard | undefined> {
    const hash: Record<string, string> = await this.#connection.call((redis) => redis.hgetall(key));
    const digests = digestsOf(hash.digests);
    if (hash.root === undefined || digests === undefined) return undefined;
    return heardOf(hash.root, digests, (_, index) => reportsOf(hash[`chunk:${index}`]));
  }
}

function heardOf(
  root: string,
  digests: readonly string[],
  chunkOf: (digest: string, index: number) => readonly ListenerReport[] | undefined,
): Heard | undefined {
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

function digestsOf(text: string | null | undefined): string[] | undefined {
  const digests = parsed(text);
  return Array.isArray(digests) && digests.every((digest) => typeof digest === 'string') ? digests : undefined;
}

function reportsOf(text: string | null | undefined): ListenerReport[] | undefined {
  const reports = parsed(text);
  return Array.isArray(reports) ? reports : undefined;
}

function parsed(text: string | null | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
