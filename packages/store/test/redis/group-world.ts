import { silentLogger, systemClock } from '@weir/runtime';
import { eventually, type RedisGroup } from '@weir/testkit';
import { Redis } from 'ioredis';
import type { Store } from '../../src/contract.ts';
import { openRedisStore, type RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import type { World } from '../contract/subject.ts';
import { isReady } from './redis-world.ts';

let fleets = 0;

/** A fleet of its own in a group that the tests of one file share, one after the other. */
export function groupWorld(group: RedisGroup, options: Partial<RedisStoreOptions> = {}): World {
  const fleet = `g${++fleets}`;
  const stores: Store[] = [];
  const open = (): Store[] => stores.filter(({ connection }) => connection !== 'closed');
  const ready = async (): Promise<void> => void (await Promise.all(open().map(isReady)));
  const atPrimary = async <T>(work: (redis: Redis) => Promise<T>): Promise<T> => {
    const { host, port } = await group.primary();
    const redis = new Redis({ host, port });
    try {
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  };
  /** What all handles notice as a restart. */
  const change = async (work: (redis: Redis) => Promise<void>): Promise<void> => {
    await atPrimary(async (redis) => {
      const lost = open().map(isLost);
      await redis.flushall();
      await work(redis);
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await Promise.all(lost);
    });
    await ready();
  };
  return {
    clock: systemClock,
    async connect() {
      const store = await openRedisStore({ url: group.url, fleet, log: silentLogger(), ...options });
      stores.push(store);
      if (store.problem !== undefined) throw store.problem;
      return store;
    },
    goAway: async () => void (await Promise.all(group.pair.map((server) => server.stop()))),
    async comeBack() {
      await Promise.all(group.pair.map((server) => server.start()));
      await ready();
      await group.whole();
    },
    wipe: () => change(async () => undefined),
    checkpoint: () =>
      atPrimary(async (redis) => {
        const keys = await redis.keys(`weir:{${fleet}}:*`);
        const saved = await Promise.all(
          keys.map(async (key) => [key, await redis.dumpBuffer(key), await redis.pttl(key)] as const),
        );
        return () =>
          change(async (restored) => {
            for (const [key, dump, ttl] of saved) await restored.restore(key, Math.max(0, ttl), dump);
          });
      }),
    after: async (ms, assertion) => {
      await eventually(assertion, { timeoutMs: ms + 2_000 });
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store.close();
    },
  };
}

function isLost(store: Store): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = store.onConnection((state) => {
    if (state === 'ready') return;
    stop();
    resolve();
  });
  return promise;
}
