import type { Heartbeat } from '@weir/model';
import { type Clock, silentLogger } from '@weir/runtime';
import { inspectRedis, openRedisStore, type RedisAccess } from '@weir/store';
import { unknown } from '../fact.ts';
import type { Facts, Timed } from '../facts.ts';
import { REDIS_UNASKED } from '../finding.ts';
import { attempt } from './attempt.ts';
import { timed } from './timed.ts';

export type RedisFacts = Pick<Facts, 'redis' | 'heartbeats'>;

interface Options {
  readonly access: RedisAccess | undefined;
  readonly fleet: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What Redis says of itself, and what the proxies have said in it. */
export async function redisFacts(options: Options): Promise<RedisFacts> {
  const { access, clock, signal } = options;
  if (access === undefined) {
    const why = unknown(
      'not-asked',
      'no Redis was named; give --redis URL, or WEIR_REDIS_URL as the processes have it',
    );
    return { redis: why, heartbeats: REDIS_UNASKED };
  }
  const redis = await attempt(signal, () => timed(clock, () => inspectRedis({ ...access, fleet: options.fleet })));
  if (redis.kind === 'unknown') return { redis, heartbeats: REDIS_UNASKED };
  return { redis, heartbeats: await attempt(signal, () => readHeartbeats({ ...options, access })) };
}

async function readHeartbeats({
  access,
  fleet,
  clock,
}: Options & { readonly access: RedisAccess }): Promise<Timed<Beats>> {
  const store = await openRedisStore({ ...access, fleet, log: silentLogger() });
  try {
    if (store.problem !== undefined) throw store.problem;
    return await timed(clock, async () => ({ items: await store.heartbeats.list() }));
  } finally {
    await store.close();
  }
}

interface Beats {
  readonly items: readonly Heartbeat[];
}
