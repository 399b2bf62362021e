import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { Redis } from 'ioredis';
import type { RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import { type RedisWorld, type StartedRedis, startRedisWithData } from './redis-world.ts';

export interface BesideRedis {
  /** A client that knows nothing of the store. */
  redis(): Redis;
  url(): string;
  /** A fleet of its own in it. */
  open(options?: Partial<RedisStoreOptions>): RedisWorld;
}

/** One Redis for all tests of the describe that this is called in. */
export function besideRedis(): BesideRedis {
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
    open: (options) => started?.world(options) ?? assert.fail('not started'),
  };
}
