import type { Heartbeat } from '@weir/model';
import { type Clock, silentLogger } from '@weir/runtime';
import { inspectRedis, openRedisStore, type RedisAccess } from '@weir/store';
import { unknownFact } from '../fact.ts';
import type { Facts, Timed } from '../facts.ts';
import { REDIS_UNAVAILABLE } from '../finding.ts';
import { attemptFact } from './attempt.ts';
import { withTimes } from './timed.ts';

export type RedisFacts = Pick<Facts, 'redis' | 'heartbeats'>;

interface CollectRedisOptions {
  readonly access: RedisAccess | undefined;
  readonly fleet: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What Redis says of itself, and what the proxies have said in it. */
export async function collectRedis(options: CollectRedisOptions): Promise<RedisFacts> {
  const { access, clock, signal } = options;
  if (access === undefined) {
    const why = unknownFact(
      'not-asked',
      'no Redis was named; give --redis URL, or WEIR_REDIS_URL as the processes have it',
    );
    return { redis: why, heartbeats: REDIS_UNAVAILABLE };
  }
  const redis = await attemptFact(signal, () =>
    withTimes(clock, () => inspectRedis({ ...access, fleet: options.fleet })),
  );
  if (redis.kind === 'unknown') return { redis, heartbeats: REDIS_UNAVAILABLE };
  return { redis, heartbeats: await attemptFact(signal, () => readHeartbeats({ ...options, access })) };
}

async function readHeartbeats({
  access,
  fleet,
  clock,
}: CollectRedisOptions & { readonly access: RedisAccess }): Promise<Timed<HeartbeatList>> {
  const store = await openRedisStore({ ...access, fleet, log: silentLogger() });
  try {
    if (store.connectionError !== undefined) throw store.connectionError;
    return await withTimes(clock, async () => ({ items: await store.heartbeats.list() }));
  } finally {
    await store.close();
  }
}

interface HeartbeatList {
  readonly items: readonly Heartbeat[];
}
