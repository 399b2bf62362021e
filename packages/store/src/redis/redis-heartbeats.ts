import type { Heartbeat } from '@weir/model/data-plane';
import type { ChainableCommander } from 'ioredis';
import type { HeartbeatStore } from '../contract.ts';
import { byNodeAndLife } from '../heartbeat-order.ts';
import { HEARTBEAT_TTL_MS } from '../limits.ts';
import type { RedisConnection } from './connection.ts';
import { HeardListeners } from './heard-listeners.ts';
import { decodeState, encodeState, strangerOf } from './heartbeat-codec.ts';
import type { Keys } from './keys.ts';
import { chunksOf, type ListenerChunks } from './listener-chunks.ts';
import { atOnce, together } from './transaction.ts';

export class RedisHeartbeats implements HeartbeatStore {
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  readonly #heard: HeardListeners;
  /** What lies in Redis as far as we know, by the key of the proxy: a process may have several. */
  readonly #sent = new Map<string, ListenerChunks>();

  constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
    this.#heard = new HeardListeners(connection);
  }

  async beginLife(node: string, atLeast: number): Promise<number> {
    return Number(await this.#connection.run('begin-life', [this.#keys.lives], [node, atLeast]));
  }

  async beat(heartbeat: Heartbeat): Promise<void> {
    const { node, life, listeners } = heartbeat;
    const key = this.#keys.proxy(node, life);
    const sent = this.#sent.get(key);
    const chunks = chunksOf(listeners, sent);
    const state = [HEARTBEAT_TTL_MS, memberFor(node, life), encodeState(heartbeat)];
    const run = (args: readonly (string | number)[]): Promise<unknown> =>
      this.#connection.run('beat-proxy', [key, this.#keys.proxies], [...state, ...args]);
    // Until there is an answer nobody knows what lies there.
    this.#sent.delete(key);
    const isPatch = sent?.chunks.length === chunks.chunks.length;
    const isKept = isPatch && (await run([sent.root, ...newsOf(chunks, sent)])) === 1;
    if (!isKept) await run(['', ...wholeOf(chunks)]);
    this.#sent.set(key, chunks);
  }

  async leave(node: string, life: number): Promise<void> {
    const { proxies, proxy } = this.#keys;
    this.#sent.delete(proxy(node, life));
    await this.#connection.call((redis) =>
      atOnce(redis, (all) => all.unlink(proxy(node, life)).zrem(proxies, memberFor(node, life))),
    );
  }

  async list(): Promise<readonly Heartbeat[]> {
    const members = await this.#connection.call((redis) => redis.zrange(this.#keys.proxies, '0', '-1'));
    if (members.length === 0) return [];
    const lives = members.map(parseMember);
    const found = await this.#connection.call((redis) =>
      together(redis, (all) =>
        lives.reduce<ChainableCommander>(
          (each, { node, life }) => each.hmget(this.#keys.proxy(node, life), 'state', 'root'),
          all,
        ),
      ),
    );
    this.#heard.keep(new Set(lives.map(({ node, life }) => this.#keys.proxy(node, life))));
    const heartbeats = await Promise.all(
      lives.map((proxy, index) => this.#heartbeatOf(proxy, found[index] as [string | null, string | null])),
    );
    return heartbeats.filter((heartbeat) => heartbeat !== undefined).sort(byNodeAndLife);
  }

  async nodes(): Promise<ReadonlySet<string>> {
    return new Set(await this.#connection.call((redis) => redis.hkeys(this.#keys.lives)));
  }

  async #heartbeatOf(
    proxy: Pick<Heartbeat, 'node' | 'life'>,
    [text, root]: readonly [string | null, string | null],
  ): Promise<Heartbeat | undefined> {
    if (text === null) return undefined;
    const state = decodeState(text);
    if (state === undefined) return strangerOf(proxy, text);
    if (root === null) return undefined;
    const listeners = await this.#heard.of(this.#keys.proxy(state.node, state.life), root);
    return listeners && { ...state, listeners };
  }
}

/** As `beat-proxy` takes them: nothing, or the new root, the digests, and by index the chunks that are not there yet. */
function newsOf({ root, chunks }: ListenerChunks, sent: ListenerChunks): (string | number)[] {
  if (root === sent.root) return [];
  const changed = chunks.flatMap(({ digest, text }, index) =>
    sent.chunks[index]?.digest === digest ? [] : [index, text],
  );
  return [root, digestsTextOf(chunks), ...changed];
}

function wholeOf({ root, chunks }: ListenerChunks): (string | number)[] {
  return [root, digestsTextOf(chunks), ...chunks.flatMap(({ text }, index) => [index, text])];
}

function digestsTextOf(chunks: ListenerChunks['chunks']): string {
  return JSON.stringify(chunks.map(({ digest }) => digest));
}

function memberFor(node: string, life: number): string {
  return `${life}:${node}`;
}

function parseMember(member: string): { node: string; life: number } {
  const colon = member.indexOf(':');
  return { life: Number(member.slice(0, colon)), node: member.slice(colon + 1) };
}
