import { silentLogger, systemClock } from '@weir/runtime';
import { eventually, type RedisGroup } from '@weir/testkit';
import { Redis } from 'ioredis';
import type { Store } from '../../src/contract.ts';
import { openRedisStore, type RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import type { StoreFixture } from '../contract/subject.ts';
import { waitUntilReady } from './redis-world.ts';

let fleets = 0;

/** A fleet of its own in a group that the tests of one file share, one after the other. */
export function replicatedRedisFixture(group: RedisGroup, options: Partial<RedisStoreOptions> = {}): StoreFixture {
  const fleet = `g${++fleets}`;
  const stores: Store[] = [];
  const open = (): Store[] => stores.filter(({ connection }) => connection !== 'closed');
  const ready = async (): Promise<void> => void (await Promise.all(open().map(waitUntilReady)));
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
      const lost = open().map(waitUntilLost);
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
      if (store.connectionError !== undefined) throw store.connectionError;
      return store;
    },
    goAway: async () => void (await Promise.all(group.pair.map((server) => server.stop()))),
    async comeBack() {
      await Promise.all(group.pair.map((server) => server.start()));
      await ready();
      await group.waitUntilHealthy();
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
    eventually: async (ms, assertion) => {
      await eventually(assertion, { timeoutMs: ms + 2_000 });
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store.close();
    },
  };
}

function waitUntilLost(store: Store): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = store.onConnectionChange((state) => {
    if (state === 'ready') return;
    stop();
    resolve();
  });
  return promise;
}
