import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tableOf } from '@weir/model';
import { requireProgram } from '@weir/tools';
import { Redis } from 'ioredis';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { contentOf, contentOfEntries, entry, heartbeat, report, suspension } from '../contract/sample-data.ts';
import { type StartedRedis, startRedisWithData } from './fixtures/redis-fixture.ts';

const FULL = { code: 'REFUSED', message: /is out of memory; raise its maxmemory$/ };

describe('a Redis that has reached its maxmemory', requireProgram('redis'), () => {
  let started: StartedRedis;
  let client: Redis;
  before(async () => {
    started = await startRedisWithData();
    client = new Redis(started.url);
  });
  after(async () => {
    client?.disconnect();
    await started?.close();
  });

  test('takes heartbeats, cut-offs and leases, refuses changes and usage without a partial effect, and recovers', async (t) => {
    await using fixture = started.fixture();
    const store = await fixture.connect();
    await store.usage.seed({ months: [], bases: [] });
    await store.suspensions.put(suspension('old'));
    await store.suspensions.markComplete();
    const publisher = new TablePublisher({ store: store.table });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([entry('a'), entry('b')]));
    const before = await store.table.meta();
    const stopped = new AbortController();
    t.after(() => stopped.abort());
    const watch = store.suspensions.watch(stopped.signal)[Symbol.asyncIterator]();
    await watch.next();

    await client.config('SET', 'maxmemory', '1');
    t.after(() => client.config('SET', 'maxmemory', '0'));
    const life = await store.heartbeats.beginIncarnation('n', 1);
    await store.heartbeats.record(heartbeat('n', life));
    assert.deepEqual(
      (await store.heartbeats.list()).map((each) => each.life),
      [life],
    );
    const request = {
      owner: { kind: 'tenant', name: 'shop' },
      resource: 'connections',
      limit: 10,
      claim: { demand: 1, weight: 1, floor: 0, used: 0 },
      held: 4,
      wanted: 4,
    } as const;
    const [grant] = await store.leases.exchange({ node: 'n', life, sequence: 1, mayRaise: true, requests: [request] });
    assert.equal(grant?.share, 4);
    await store.suspensions.put(suspension('new'));
    const added = (await watch.next()).value;
    assert.deepEqual(
      added?.suspensions.map(({ uid }: { uid: string }) => uid),
      ['new', 'old'],
    );
    await store.suspensions.remove('old');
    const removed = (await watch.next()).value;
    assert.deepEqual(
      removed?.suspensions.map(({ uid }: { uid: string }) => uid),
      ['new'],
    );
    await assert.rejects(publisher.publish(tableOf([entry('a'), entry('b'), entry('c')])), FULL);
    assert.deepEqual(await store.table.meta(), before);
    assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a'), entry('b')));
    await assert.rejects(store.usage.flush(report([[29_000_000, 5]], { node: 'n', life })), FULL);
    await store.usage.fold('m', 1);
    assert.equal(store.connection, 'ready');

    await client.config('SET', 'maxmemory', '0');
    const result = await publisher.publish(tableOf([entry('a'), entry('b'), entry('c')]));
    assert.ok(result.kind === 'published' && !result.newEpoch);
    assert.deepEqual(await store.usage.flush(report([[29_000_000, 5]], { node: 'n', life })), { kind: 'accepted' });
  });
});
