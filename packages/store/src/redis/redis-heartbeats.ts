import { createHash } from 'node:crypto';
import type { Heartbeat, ListenerReport } from '@weir/model';
import type { ChainableCommander } from 'ioredis';
import type { HeartbeatStore } from '../contract.ts';
import { byNodeAndLife } from '../heartbeat-order.ts';
import { HEARTBEAT_TTL_MS } from '../limits.ts';
import type { RedisConnection } from './connection.ts';
import { decodeHeartbeat, encodeHeartbeat } from './heartbeat-codec.ts';
import type { Keys } from './keys.ts';
import { atOnce, together } from './transaction.ts';

export class RedisHeartbeats implements HeartbeatStore {
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  /** What was encoded last, by the object: a list that did not change is neither encoded nor sent again. */
  #lastListeners:
    | { readonly of: readonly ListenerReport[]; readonly text: string; readonly digest: string }
    | undefined;

  constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async beginLife(node: string, atLeast: number): Promise<number> {
    return Number(await this.#connection.run('begin-life', [this.#keys.lives], [node, atLeast]));
  }

  async beat(heartbeat: Heartbeat): Promise<void> {
    const { node, life } = heartbeat;
    const listeners = this.#listenersOf(heartbeat);
    const keys = [this.#keys.proxy(node, life), this.#keys.proxies];
    const args: (string | number)[] = [
      HEARTBEAT_TTL_MS,
      memberFor(node, life),
      encodeHeartbeat(heartbeat),
      listeners.digest,
    ];
    const isKept = await this.#connection.run('beat-proxy', keys, args);
    if (isKept === 0) await this.#connection.run('beat-proxy', keys, [...args, listeners.text]);
  }

  async leave(node: string, life: number): Promise<void> {
    const { proxies, proxy } = this.#keys;
    await this.#connection.call((redis) =>
      atOnce(redis, (all) => all.unlink(proxy(node, life)).zrem(proxies, memberFor(node, life))),
    );
  }

  async list(): Promise<readonly Heartbeat[]> {
    const members = await this.#connection.call((redis) => redis.zrange(this.#keys.proxies, '0', '-1'));
    if (members.length === 0) return [];
    const lives = members.map(parseMember);
    const hashes = await this.#connection.call((redis) =>
      together(redis, (all) =>
        lives.reduce<ChainableCommander>((each, { node, life }) => each.hgetall(this.#keys.proxy(node, life)), all),
      ),
    );
    return hashes
      .map((hash) => decodeHeartbeat(hash as Record<string, string>))
      .filter((heartbeat) => heartbeat !== undefined)
      .sort(byNodeAndLife);
  }

  #listenersOf({ listeners }: Heartbeat) {
    if (this.#lastListeners?.of === listeners) return this.#lastListeners;
    const text = JSON.stringify(listeners);
    const digest = createHash('sha1').update(text).digest('base64');
    this.#lastListeners = { of: listeners, text, digest };
    return this.#lastListeners;
  }
}

function memberFor(node: string, life: number): string {
  return `${life}:${node}`;
}

function parseMember(member: string): { node: string; life: number } {
  const colon = member.indexOf(':');
  return { life: Number(member.slice(0, colon)), node: member.slice(colon + 1) };
}
