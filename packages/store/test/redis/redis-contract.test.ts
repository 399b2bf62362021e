import { after, before, describe } from 'node:test';
import { requireProgram } from '@weir/tools';
import { storeContract } from '../contract/store-contract.ts';
import { type StartedRedis, startRedisWithData } from './fixtures/redis-fixture.ts';

describe('with a real Redis', requireProgram('redis'), () => {
  let started: StartedRedis | undefined;
  before(async () => {
    started = await startRedisWithData();
  });
  after(() => started?.close());

  storeContract({
    name: 'Redis',
    open: async (options) => {
      if (started === undefined) throw new Error('Redis was not started');
      return started.fixture(options);
    },
  });
});
