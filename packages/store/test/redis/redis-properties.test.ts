import { after, before, describe } from 'node:test';
import { requireProgram } from '@weir/tools';
import { followProperties } from '../contract/follow-properties.ts';
import { leasesProperties } from '../contract/leases-properties.ts';
import type { StoreUnderTest } from '../contract/store-fixture.ts';
import { usageProperties } from '../contract/usage-properties.ts';
import { type StartedRedis, startRedisWithData } from './fixtures/redis-fixture.ts';

// Does only a few runs, because each wipe or rollback restarts a real server.
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
  leasesProperties(redis, { numRuns: 15 });
});
