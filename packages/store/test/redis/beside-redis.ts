import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { Redis } from 'ioredis';
import type { RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import { type RedisFixture, type StartedRedis, startRedisWithData } from './redis-world.ts';

export interface SharedRedis {
  /** A client that knows nothing of the store. */
  redis(): Redis;
  url(): string;
  /** A fleet of its own in it. */
  fixture(options?: Partial<RedisStoreOptions>): RedisFixture;
}

/** One Redis for all tests of the describe that this is called in. */
export function useSharedRedis(): SharedRedis {
  let started: StartedRedis | undefined;
  let client: Redis | undefined;
  before(async () => {
    started = await startRedisWithData();
    client = new Redis(started.url);
  });
  after(async () => {
    client?.disconnect();
    await started?.close();
  });
  return {
    redis: () => client ?? assert.fail('not started'),
    url: () => started?.url ?? assert.fail('not started'),
    fixture: (options) => started?.fixture(options) ?? assert.fail('not started'),
  };
}
