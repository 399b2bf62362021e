import { after, before, describe } from 'node:test';
import { type RedisGroup, requireProgram, startRedisCluster, startRedisSentinel } from '@weir/tools';
import { storeContract } from '../contract/store-contract.ts';
import { replicatedRedisFixture } from './fixtures/replicated-redis-fixture.ts';

for (const [name, startGroup] of [
  ['Redis behind sentinels', startRedisSentinel],
  ['a cluster of Redis', startRedisCluster],
] as const) {
  describe(`with ${name}`, requireProgram('redis'), () => {
    let group: RedisGroup | undefined;
    before(async () => {
      group = await startGroup({ downAfterMs: 10_000 });
    });
    after(() => group?.close());

    storeContract({
      name,
      open: async (options) => {
        if (group === undefined) throw new Error('the group was not started');
        return replicatedRedisFixture(group, options);
      },
    });
  });
}
