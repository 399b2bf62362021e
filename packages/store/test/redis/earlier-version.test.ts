// The content of a Redis that an earlier version (commit 87dfbec5) wrote, and content of a version that does not exist yet.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { monthOf } from '@weir/model';
import { requireProgram } from '@weir/tools';
import type { LeaseGrant } from '../../src/contract.ts';
import { keysFor } from '../../src/redis/keys.ts';
import { entry, heartbeat, report, suspension } from '../contract/sample-data.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';

const MINUTE = 29_000_000;
const {
  table,
  heartbeat: beat,
  cutoffs,
  names,
  month,
  bases,
} = JSON.parse(readFileSync(new URL('./fixtures/earlier-version.json', import.meta.url), 'utf8')) as Record<
  'table' | 'heartbeat' | 'cutoffs' | 'names' | 'month' | 'bases',
  Record<string, string>
>;

describe('the content of another version in Redis', requireProgram('redis'), () => {
  const { redis, fixture } = useSharedRedis();
  const META = { epoch: '1', revision: '5', id: 'abc', complete: '5', leader: '1' };

  test('is read if an earlier version wrote it, and its counters go on', async () => {
    await using world = fixture();
    const store = await world.connect();
    const keys = keysFor(world.fleet);
    const [node, life] = ['n1', 1_700_000_000];
    await redis().hset(keys.table, table);
    await redis().hset(keys.meta, META);
    await redis().hset(keys.proxy(node, life), beat);
    await redis().zadd(keys.proxies, Date.now(), `${life}:${node}`);
    await redis().hset(keys.cutoffs, cutoffs);
    await redis().hset(keys.usage.names, names);
    await redis().hset(keys.usage.sum('shop', '2025-02'), month);
    await redis().hset(keys.usage.bases(node), bases);
    await redis().sadd(keys.usage.tenants, 'shop');
    await redis().sadd(keys.usage.nodes, node);
    await redis().sadd(keys.usage.months, '2025-02');
    await redis().set(keys.usage.open, '1');

    const snapshot = await store.table.read();
    assert.deepEqual([...(snapshot?.table.entries.keys() ?? [])].sort(), Object.keys(table).sort());
    assert.deepEqual(snapshot?.unreadable, []);
    const [found] = await store.heartbeats.list();
    assert.deepEqual(
      [found?.node, found?.life, found?.listeners.length, found?.connections, found?.unreadable],
      [node, life, 1, 5, undefined],
    );
    const { suspensions } = await store.suspensions.read();
    assert.deepEqual(
      suspensions.map(({ uid, message }) => [uid, message]),
      [['s1', 'too much']],
    );
    // The counters are cumulative: the earlier version has counted the first 100 bytes.
    assert.deepEqual(await store.usage.flush(report([[MINUTE, 130]], { node, life })), { kind: 'accepted' });
    const [row] = await store.usage.rows(monthOf(MINUTE * 60_000), 'shop');
    assert.deepEqual([row?.name, row?.counters.receivedBytes, row?.counters.requests], ['web', 130, 4]);
  });

  test('divides a limit with members whose claims have fewer or more numbers', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { lease, leaseMembers } = keysFor(world.fleet);
    const name = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' } as const;
    const claim = { demand: 5, weight: 1, floor: 5, used: 0 };
    const exchange = (sequence: number): Promise<readonly LeaseGrant[]> => {
      const request = { ...name, limit: 100, claim, held: 5, wanted: 5 };
      return store.leases.exchange({ node: 'n1', life: 1, sequence, mayRaise: true, requests: [request] });
    };
    await exchange(1);
    await redis().hset(leaseMembers, {
      '1:n2': `${Date.now()} 1`,
      '1:n3': `${Date.now()} 1`,
      '1:n4': `${Date.now()} 1`,
    });
    await redis().hset(lease(name), { '1:n2': '9 50 2 9', '1:n3': '7 8 3 7 1 99', '1:n4': '0 x 0' });
    assert.deepEqual(await exchange(2), [
      {
        share: 5,
        rank: 0,
        others: [
          { demand: 50, weight: 2, floor: 9, used: 0 },
          { demand: 8, weight: 3, floor: 7, used: 1 },
          { demand: 0, weight: 1, floor: 0, used: 0 },
        ],
      },
    ]);
  });

  test('is refused in words if a later version wrote it', async () => {
    await using world = fixture();
    const store = await world.connect();
    const keys = keysFor(world.fleet);
    await redis().hset(keys.meta, META);
    await redis().hset(keys.table, { 'node/a': JSON.stringify({ v: 999, ...entry('a') }), ...table });
    const snapshot = await store.table.read();
    assert.deepEqual(snapshot?.unreadable, ['node/a']);
    assert.equal(snapshot?.table.entries.size, Object.keys(table).length);

    const { listeners: _, ...state } = heartbeat('n', 3, { version: '99.0.0' });
    await redis().hset(keys.proxy('n', 3), { state: JSON.stringify({ v: 999, ...state }) });
    await redis().zadd(keys.proxies, Date.now(), '3:n');
    const [found] = await store.heartbeats.list();
    assert.equal(found?.version, '99.0.0');
    assert.match(found?.unreadable ?? '', /has format 999, but the version of Weir that read it knows only format 2/);

    await store.suspensions.put(suspension('known'));
    await store.suspensions.markComplete();
    await redis().hset(keys.cutoffs, 'later', JSON.stringify({ v: 999, uid: 'later' }));
    const cutoffState = await store.suspensions.read();
    // An incomplete list lifts no cut-off.
    assert.equal(cutoffState.completeSince, null);
  });
});
