import { after, before, describe } from 'node:test';
import { requireProgram } from '@weir/testkit';
import { followProperties } from '../contract/follow-law.ts';
import type { StoreUnderTest } from '../contract/subject.ts';
import { usageProperties } from '../contract/usage-law.ts';
import { type StartedRedis, startRedisWithData } from './redis-world.ts';

// few runs: each wipe or roll back stops and starts a real server
describe('with a real Redis', requireProgram('redis'), () => {
  let started: StartedRedis | undefined;
  before(async () => {
    started = await startRedisWithData();
  });
  after(() => started?.close());

  const redis: StoreUnderTest = {
    name: 'Redis',
    open: async (options) => {
      if (started === undefined) throw new Error('Redis was not started');
      return started.fixture(options);
    },
  };
  followProperties(redis, { numRuns: 3 });
  usageProperties(redis, { numRuns: 4 });
});
