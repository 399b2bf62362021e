import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually, type Redis, startRedis, temporaryDirectory } from '@weir/testkit';
import type { Store } from '../../src/contract.ts';
import { openRedisStore, type RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import type { StoreFixture } from '../contract/subject.ts';

export interface RedisFixture extends StoreFixture {
  readonly redis: Redis;
  readonly fleet: string;
}

let fleets = 0;

/** A fleet of its own in a Redis that the tests of one file share, one after the other. */
export function redisFixture(
  redis: Redis,
  dataDirectory: string,
  options: Partial<RedisStoreOptions> = {},
): RedisFixture {
  const fleet = `f${++fleets}`;
  const stores: Store[] = [];
  const ready = async (): Promise<void> => {
    await Promise.all(stores.filter(({ connection }) => connection !== 'closed').map(waitUntilReady));
  };
  return {
    clock: systemClock,
    redis,
    fleet,
    async connect() {
      const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger(), ...options });
      stores.push(store);
      if (store.connectionError !== undefined) throw store.connectionError;
      return store;
    },
    // not SIGKILL: it may lose the last writes while the disk is busy, and the world promises its data back
    goAway: () => redis.stop(),
    async comeBack() {
      await redis.start();
      await ready();
    },
    async wipe() {
      await redis.wipe();
      await ready();
    },
    async checkpoint() {
      const saved = temporaryDirectory('redis-checkpoint');
      await redis.stop();
      cpSync(dataDirectory, join(saved.path, 'data'), { recursive: true });
      await redis.start();
      await ready();
      return async () => {
        await redis.stop({ signal: 'SIGKILL' });
        rmSync(dataDirectory, { recursive: true });
        cpSync(join(saved.path, 'data'), dataDirectory, { recursive: true });
        await redis.start();
        await ready();
      };
    },
    eventually: async (ms, assertion) => {
      await eventually(assertion, { timeoutMs: ms + 2_000 });
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store.close();
    },
  };
}

export interface StartedRedis {
  readonly url: string;
  fixture(options?: Partial<RedisStoreOptions>): RedisFixture;
  close(): Promise<void>;
}

/** A Redis and the directory that it keeps its data in. */
export async function startRedisWithData(): Promise<StartedRedis> {
  const directory = temporaryDirectory('redis-data');
  const redis = await startRedis({ dir: directory.path });
  return {
    url: redis.url,
    fixture: (options) => redisFixture(redis, directory.path, options),
    async close() {
      await redis.close();
      await directory.close();
    },
  };
}

export async function waitUntilReady(store: Store): Promise<void> {
  if (store.connection === 'ready') return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = store.onConnectionChange((state) => {
    if (state === 'ready') resolve();
  });
  await promise;
  stop();
}
