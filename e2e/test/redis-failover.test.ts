// Failovers of Redis, and the move of a slot in a Redis Cluster, while clients, changes and proxies are busy. No client may notice, and the
// ledger must equal what the clients counted.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@weir/testkit';
import { type RedisGroup, requireProgram, startRedisCluster, startRedisSentinel } from '@weir/tools';
import { type LoadedFleet, startLoadedFleet } from '../src/redis-load/loaded-fleet.ts';

const FLEET = 'busy';

describe('a busy fleet with Redis behind sentinels', requireProgram('redis'), () => {
  let group: Awaited<ReturnType<typeof startRedisSentinel>>;
  let fleet: LoadedFleet;
  before(async () => {
    group = await startRedisSentinel();
    fleet = await startLoadedFleet({ redisUrl: group.url, fleet: FLEET });
  });
  after(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await group?.close();
  });

  test('loses nothing when an operator moves the primary', async (t) => {
    await fleet.survives(t, async () => {
      const [sentinel] = group.sentinels;
      assert.ok(sentinel !== undefined);
      const primary = await group.primary();
      await group.command(sentinel, 'SENTINEL FAILOVER weir');
      await eventually(async () => assert.notEqual(await group.primary(), primary), { timeoutMs: 30_000 });
    });
  });

  test('loses nothing when the primary is killed', async (t) => {
    await group.waitUntilHealthy();
    await fleet.survives(t, () => killPrimary(group));
  });

  test('loses nothing while Redis is full, and each proxy says that its usage waits', async (t) => {
    await group.waitUntilHealthy();
    const primary = await group.primary();
    await fleet.survives(t, async () => {
      await group.command(primary, 'CONFIG SET maxmemory 1');
      await eventually(
        async () => {
          for (const warning of await fleet.ledgerWarnings())
            assert.match(warning, /the ledger refuses the usage .* is out of memory; raise its maxmemory/);
        },
        { timeoutMs: 30_000 },
      );
      await group.command(primary, 'CONFIG SET maxmemory 0');
    });
    await eventually(async () => assert.equal((await fleet.ledgerWarnings()).join(''), ''), { timeoutMs: 30_000 });
  });
});

describe('a busy fleet with a Redis Cluster', requireProgram('redis'), () => {
  let group: Awaited<ReturnType<typeof startRedisCluster>>;
  let fleet: LoadedFleet;
  before(async () => {
    group = await startRedisCluster();
    fleet = await startLoadedFleet({ redisUrl: group.url, fleet: FLEET });
  });
  after(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await group?.close();
  });

  test('loses nothing when its slot moves to another server and back, key by key', async (t) => {
    const first = await group.primary();
    const other = group.others[0];
    assert.ok(other !== undefined);
    const key = `weir:{${FLEET}}:meta`;
    // Lets the proxies and the controller call scripts between two steps.
    const afterStep = (): Promise<void> => pause(50);
    await fleet.survives(t, async () => {
      await group.moveSlot(key, { from: first, to: other, afterStep });
    });
    await fleet.survives(t, async () => {
      await group.moveSlot(key, { from: other, to: first, afterStep });
    });
  });

  test('loses nothing when the primary is killed', async (t) => {
    await group.waitUntilHealthy();
    await fleet.survives(t, () => killPrimary(group));
  });
});

async function killPrimary(group: RedisGroup): Promise<void> {
  const primary = await group.primary();
  await primary.stop({ signal: 'SIGKILL' });
  await eventually(async () => assert.notEqual(await group.primary(), primary), { timeoutMs: 30_000 });
  await primary.start();
}
