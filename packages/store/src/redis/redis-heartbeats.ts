import type { Heartbeat } from '@weir/model/data-plane';
import type { ChainableCommander } from 'ioredis';
import { compareHeartbeats } from '../comparators.ts';
import type { HeartbeatStore } from '../contract.ts';
import { HEARTBEAT_TTL_MS } from '../limits.ts';
import { runPipeline } from './connection/pipeline.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';
import { chunkListeners, type ListenerChunks, ListenerReportCache } from './listener-chunks.ts';

export class RedisHeartbeats implements HeartbeatStore {
  readonly #connection: RedisCalls;
  readonly #keys: Keys;
  readonly #listenerCache: ListenerReportCache;
  /** The listener chunks that Redis holds since the last successful write, by the proxy's key. A process may run several proxies. */
  readonly #lastSentByKey = new Map<string, ListenerChunks>();

  constructor(connection: RedisCalls, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
    this.#listenerCache = new ListenerReportCache(connection);
  }

  async beginIncarnation(node: string, atLeast: number): Promise<number> {
    return Number(await this.#connection.run('begin-life', [this.#keys.lives], [node, atLeast]));
  }

  async record(heartbeat: Heartbeat): Promise<void> {
    const { node, life, listeners } = heartbeat;
    const key = this.#keys.proxy(node, life);
    const sent = this.#lastSentByKey.get(key);
    const chunks = chunkListeners(listeners, sent);
    const state = [HEARTBEAT_TTL_MS, node, life, encodeHeartbeatState(heartbeat)];
    const run = (args: readonly (string | number)[]): Promise<unknown> =>
      this.#connection.run('beat-proxy', [key, this.#keys.proxies, this.#keys.lives], [...state, ...args]);
    // Forgets the chunks of the last write, because the stored chunks are unknown until Redis responds.
    this.#lastSentByKey.delete(key);
    const isPatch = sent?.chunks.length === chunks.chunks.length;
    const isPatched = isPatch && (await run([sent.root, ...changedChunkArgs(chunks, sent)])) === 1;
    if (!isPatched) await run(['', ...allChunkArgs(chunks)]);
    this.#lastSentByKey.set(key, chunks);
  }

  async remove(node: string, life: number): Promise<void> {
    const { proxies, proxy } = this.#keys;
    this.#lastSentByKey.delete(proxy(node, life));
    await this.#connection.call((redis) =>
      // Uses no transaction, because a full Redis refuses MULTI. `list` ignores a member without a heartbeat.
      runPipeline(redis, (all) => all.unlink(proxy(node, life)).zrem(proxies, memberFor(node, life))),
    );
  }

  async list(): Promise<readonly Heartbeat[]> {
    const members = await this.#connection.call((redis) => redis.zrange(this.#keys.proxies, '0', '-1'));
    if (members.length === 0) return [];
    const proxies = members.map(parseMember);
    const states = await this.#connection.call((redis) =>
      runPipeline(redis, (all) =>
        proxies.reduce<ChainableCommander>(
          (pipeline, { node, life }) => pipeline.hmget(this.#keys.proxy(node, life), 'state', 'root'),
          all,
        ),
      ),
    );
    this.#listenerCache.retain(new Set(proxies.map(({ node, life }) => this.#keys.proxy(node, life))));
    const heartbeats = await Promise.all(
      proxies.map((proxy, index) => this.#heartbeatOf(proxy, states[index] as [string | null, string | null])),
    );
    return heartbeats.filter((heartbeat) => heartbeat !== undefined).sort(compareHeartbeats);
  }

  async knownNodes(): Promise<ReadonlySet<string>> {
    return new Set(await this.#connection.call((redis) => redis.hkeys(this.#keys.lives)));
  }

  async #heartbeatOf(
    proxy: Pick<Heartbeat, 'node' | 'life'>,
    [text, root]: readonly [string | null, string | null],
  ): Promise<Heartbeat | undefined> {
    if (text === null) return undefined;
    const state = decodeHeartbeatState(text);
    if (state === undefined) return unknownVersionHeartbeat(proxy, text);
    if (root === null) return undefined;
    const listeners = await this.#listenerCache.read(this.#keys.proxy(state.node, state.life), root);
    return listeners && { ...state, listeners };
  }
}

/**
 * Returns the chunk arguments of `beat-proxy`: an empty list if no chunk has changed, otherwise the new root, all digests, and the index
 * and text of each changed chunk.
 */
function changedChunkArgs({ root, chunks }: ListenerChunks, sent: ListenerChunks): (string | number)[] {
  if (root === sent.root) return [];
  const changed = chunks.flatMap(({ digest, text }, index) =>
    sent.chunks[index]?.digest === digest ? [] : [index, text],
  );
  return [root, encodeDigests(chunks), ...changed];
}

function allChunkArgs({ root, chunks }: ListenerChunks): (string | number)[] {
  return [root, encodeDigests(chunks), ...chunks.flatMap(({ text }, index) => [index, text])];
}

function encodeDigests(chunks: ListenerChunks['chunks']): string {
  return JSON.stringify(chunks.map(({ digest }) => digest));
}

/** Returns the name of an incarnation in keys such as `proxies` and `leaseMembers`. */
export function memberFor(node: string, life: number): string {
  return `${life}:${node}`;
}

export function parseMember(member: string): { node: string; life: number } {
  const colon = member.indexOf(':');
  return { life: Number(member.slice(0, colon)), node: member.slice(colon + 1) };
}

const HEARTBEAT_FORMAT = 2;
export type HeartbeatState = Omit<Heartbeat, 'listeners'>;

/**
 * Encodes a heartbeat as JSON without its listeners. Listeners are stored in chunks, because a proxy may have thousands of listeners that
 * rarely change.
 */
export function encodeHeartbeatState({ listeners: _listeners, ...state }: Heartbeat): string {
  return JSON.stringify({ v: HEARTBEAT_FORMAT, ...state });
}

/** Decodes the text of `encodeHeartbeatState`. Returns undefined if the text is damaged or of an unknown version. */
export function decodeHeartbeatState(text: string): HeartbeatState | undefined {
  const { v, ...state } = parseRecord(text);
  const isState = v === HEARTBEAT_FORMAT && typeof state.node === 'string' && Number.isSafeInteger(state.life);
  return isState ? (state as unknown as HeartbeatState) : undefined;
}

/**
 * Returns a placeholder heartbeat for a proxy whose state cannot be decoded. The proxy must not count as dead, because it serves the
 * routing table, whose format has its own version.
 */
export function unknownVersionHeartbeat({ node, life }: Pick<Heartbeat, 'node' | 'life'>, text: string): Heartbeat {
  const { v, version } = parseRecord(text);
  const format = typeof v === 'number' ? `format ${v}` : 'a format without a number';
  return {
    node,
    life,
    version: typeof version === 'string' ? version : 'unknown',
    startedAt: 0,
    draining: false,
    addresses: [],
    applied: null,
    cutoffSequence: 0,
    listeners: [],
    workers: 0,
    connections: 0,
    unreadable: `the heartbeat of the proxy on node "${node}" has ${format}, but the version of Weir that read it knows only format ${HEARTBEAT_FORMAT}; the published addresses of the node do not change until proxy and controller run the same version`,
  };
}

function parseRecord(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
