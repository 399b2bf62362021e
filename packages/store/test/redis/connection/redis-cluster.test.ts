import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { silentLogger } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram, startRedisCluster } from '@weir/tools';
import { inspectRedis } from '../../../src/redis/connection/inspect-redis.ts';
import { keysFor } from '../../../src/redis/keys.ts';
import { openRedisStore } from '../../../src/redis/open-redis-store.ts';
import { suspension } from '../../contract/sample-data.ts';
import { waitUntilReady } from '../fixtures/redis-fixture.ts';

const log = silentLogger();
const FLEET = 'weir';

describe('a cluster of Redis', requireProgram('redis'), () => {
  let group: Awaited<ReturnType<typeof startRedisCluster>>;
  before(async () => {
    group = await startRedisCluster();
  });
  after(() => group?.close());

  test('refuses a redis:// URL of one server of a cluster with the fix', async (t) => {
    const [other] = group.others;
    const store = await openRedisStore({ url: `redis://${other?.host}:${other?.port}`, fleet: FLEET, log });
    t.after(() => store.close());
    await assert.rejects(store.table.meta(), {
      code: 'REFUSED',
      message: /is one server of a cluster; use redis-cluster:\/\/ in the Redis URL$/,
    });
  });

  test('reconnects to the new server with all data when the slot moves, and ends watches', async (t) => {
    const store = await openRedisStore({ url: group.url, fleet: FLEET, log });
    t.after(() => store.close());
    await store.suspensions.put(suspension('a'));
    const watching = store.suspensions.watch(AbortSignal.timeout(30_000))[Symbol.asyncIterator]();
    await watching.next();
    const states: string[] = [];
    t.after(store.onConnectionChange((state) => states.push(state)));
    const ending = assert.rejects(watching.next(), { code: 'AWAY' });
    const to = group.others[0];
    assert.ok(to !== undefined);
    await group.moveSlot(keysFor(FLEET).meta, { from: await group.primary(), to });
    await ending;
    await eventually(() => assert.deepEqual(states, ['away', 'ready']));
    await waitUntilReady(store);
    assert.deepEqual(
      (await store.suspensions.read()).suspensions.map(({ uid }) => uid),
      ['a'],
    );
    await store.suspensions.put(suspension('b'));
    assert.equal((await inspectRedis({ url: group.url, fleet: FLEET })).where, `${to.host}:${to.port}`);
  });
});
