// Failovers with Sentinel and with Cluster. All connections use passwords and TLS.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { tableOf } from '@weir/model';
import { Secret, silentLogger } from '@weir/runtime';
import { eventually, makeCertificate } from '@weir/testkit';
import {
  type RedisGroup,
  type RedisGroupOptions,
  requireProgram,
  startRedisCluster,
  startRedisSentinel,
} from '@weir/tools';
import type { Store } from '../../../src/contract.ts';
import { TablePublisher } from '../../../src/publish/table-publisher.ts';
import { inspectRedis } from '../../../src/redis/connection/inspect-redis.ts';
import type { RedisAccess } from '../../../src/redis/connection/redis-target.ts';
import { openRedisStore } from '../../../src/redis/open-redis-store.ts';
import { contentOf, contentOfEntries, entry, heartbeat, suspension } from '../../contract/sample-data.ts';
import { type CaFile, createCaFile } from '../fixtures/ca-file.ts';
import { waitUntilReady } from '../fixtures/redis-fixture.ts';
import { startFollowing } from '../fixtures/table-followers.ts';

const KINDS: readonly (readonly [string, (options: RedisGroupOptions) => Promise<RedisGroup>, Partial<RedisAccess>])[] =
  [
    ['Sentinel', startRedisSentinel, { sentinelPassword: new Secret('pw-sentinel') }],
    ['Cluster', startRedisCluster, {}],
  ];

for (const [name, startGroup, more] of KINDS) {
  describe(`a failover of ${name}`, requireProgram('redis'), () => {
    const certificateAuthority = makeCertificate({ name: 'ca', isAuthority: true });
    let group: RedisGroup;
    let file: CaFile;
    let access: RedisAccess;
    let fleets = 0;
    before(async () => {
      file = createCaFile(certificateAuthority);
      group = await startGroup({ password: 'pw-redis', sentinelPassword: 'pw-sentinel', certificateAuthority });
      access = { url: group.url, password: new Secret('pw-redis'), ca: file.path, ...more };
    });
    after(async () => {
      await group?.close();
      await file?.close();
    });
    const opener = (t: TestContext) => {
      const fleet = `f${++fleets}`;
      return async (): Promise<Store> => {
        const store = await openRedisStore({ ...access, fleet, log: silentLogger() });
        t.after(() => store.close());
        if (store.connectionError !== undefined) throw store.connectionError;
        return store;
      };
    };
    const shows = (followed: ReturnType<typeof startFollowing>, ...names: string[]): Promise<void> =>
      eventually(
        () => assert.deepEqual(contentOf(followed.table), contentOfEntries(...names.map((each) => entry(each)))),
        {
          timeoutMs: 30_000,
        },
      );

    test('is unreachable when the primary dies, then uses the new primary without publishing again', async (t) => {
      await group.waitUntilHealthy();
      const open = opener(t);
      const [leading, following] = [await open(), await open()];
      const publisher = new TablePublisher({ store: leading.table });
      await publisher.becomeLeader();
      const first = await publisher.publish(tableOf([entry('a')]));
      assert.ok(first.kind === 'published');
      const followed = startFollowing(t, following);
      await shows(followed, 'a');
      const primary = await group.primary();
      const seen = await inspectRedis({ ...access, fleet: 'f1' });
      assert.deepEqual([seen.where, seen.role], [`${primary.host}:${primary.port}`, 'primary']);
      await replicated(group);

      await primary.stop({ signal: 'SIGKILL' });
      await eventually(() => assert.deepEqual([leading.connection, following.connection], ['away', 'away']));
      const started = performance.now();
      await assert.rejects(leading.heartbeats.record(heartbeat('n', 1)), { code: 'AWAY' });
      assert.ok(performance.now() - started < 100);
      await Promise.all([waitUntilReady(leading), waitUntilReady(following)]);
      assert.notEqual(await group.primary(), primary);

      publisher.recheck();
      const second = await publisher.publish(tableOf([entry('a'), entry('b')]));
      assert.ok(second.kind === 'published' && !second.newEpoch);
      await shows(followed, 'a', 'b');
      await leading.heartbeats.beginIncarnation('n', 1);
      await leading.heartbeats.record(heartbeat('n', 1));

      const states: string[] = [];
      t.after(leading.onConnectionChange((state) => states.push(state)));
      await primary.start();
      await group.waitUntilHealthy();
      await leading.heartbeats.record(heartbeat('n', 1));
      assert.deepEqual(states, []);
    });

    test('opens a new epoch and repeats no incarnation number if the new primary lacks them', async (t) => {
      await group.waitUntilHealthy();
      const open = opener(t);
      const [leading, following] = [await open(), await open()];
      const publisher = new TablePublisher({ store: leading.table });
      await publisher.becomeLeader();
      const kept = await publisher.publish(tableOf([entry('a')]));
      assert.ok(kept.kind === 'published');
      const followed = startFollowing(t, following);
      await shows(followed, 'a');
      await leading.heartbeats.beginIncarnation('n', 1);
      await replicated(group);
      const [primary, replica] = [await group.primary(), await group.replica()];
      await group.command(replica, 'CONFIG SET masterauth wrong');
      await group.command(primary, 'CLIENT KILL TYPE replica');
      const lostIncarnation = await leading.heartbeats.beginIncarnation('n', 1);
      const lost = await publisher.publish(tableOf([entry('a'), entry('lost')]));
      assert.ok(lost.kind === 'published');
      await shows(followed, 'a', 'lost');

      await primary.stop({ signal: 'SIGKILL' });
      await eventually(() => assert.equal(leading.connection, 'away'));
      await waitUntilReady(leading);
      assert.deepEqual((await leading.table.meta())?.id, kept.position.id);
      // An incarnation lasts longer than a second, so the clock exceeds its number before the next one begins.
      await eventually(() => assert.ok(Date.now() / 1_000 >= lostIncarnation + 1));
      const next = await leading.heartbeats.beginIncarnation('n', 1);
      assert.ok(next > lostIncarnation, 'no incarnation number is used twice');
      publisher.recheck();
      const again = await publisher.publish(tableOf([entry('a'), entry('next')]));
      assert.ok(again.kind === 'published' && again.newEpoch);
      await shows(followed, 'a', 'next');
      assert.equal(followed.epoch, again.position.epoch);
      await group.command(replica, 'CONFIG SET masterauth pw-redis');
      await primary.start();
    });

    test('does not use a former primary that returns', async (t) => {
      await group.waitUntilHealthy();
      const open = opener(t);
      const store = await open();
      await store.suspensions.put(suspension('before'));
      const watching = store.suspensions.watch(AbortSignal.timeout(60_000))[Symbol.asyncIterator]();
      await watching.next();
      await replicated(group);
      const stale = await group.primary();
      stale.pause();
      const ending = assert.rejects(watching.next(), { code: 'AWAY' });
      await assert.rejects(store.suspensions.read(), { code: 'AWAY' });
      await ending;
      await waitUntilReady(store);
      await store.suspensions.put(suspension('after'));
      stale.resume();
      for (let time = 0; time < 3; time++) {
        const another = await open();
        const { suspensions } = await another.suspensions.read();
        assert.deepEqual(suspensions.map(({ uid }) => uid).sort(), ['after', 'before']);
      }
      await group.waitUntilHealthy();
      assert.equal((await store.suspensions.read()).suspensions.length, 2);
    });
  });
}

/** Waits until the replica has received all writes. */
async function replicated(group: RedisGroup): Promise<void> {
  const [primary, replica] = [await group.primary(), await group.replica()];
  const offset = async (server: typeof primary): Promise<string | undefined> =>
    /master_repl_offset:(\d+)/.exec(await group.command(server, 'INFO replication'))?.[1];
  const written = Number(await offset(primary));
  await eventually(async () => assert.ok(Number(await offset(replica)) >= written));
}
