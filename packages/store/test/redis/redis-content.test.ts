// The content of Redis, checked with a plain client: several fleets, newer versions, expiry, blocked followers.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { encodeEntry, type ListenerReport, minuteOf, type TablePosition } from '@weir/model';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { keysFor } from '../../src/redis/keys.ts';
import { encodeSuspension } from '../../src/suspension-codec.ts';
import {
  contentOf,
  contentOfEntries,
  entry,
  heartbeat,
  openEpochAsLeader,
  publish,
  put,
  report,
  suspension,
} from '../contract/sample-data.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';

describe('the content of Redis', requireProgram('redis'), () => {
  const { redis, fixture } = useSharedRedis();

  test('separates fleets in one Redis by the prefix of their keys', async () => {
    await redis().flushall();
    await using a = fixture();
    await using b = fixture();
    const [inA, inB] = [await a.connect(), await b.connect()];
    const { leader, position: predecessor } = await openEpochAsLeader(inA);
    await publish(inA, { leader, predecessor, changes: [put('a')] });
    await inA.heartbeats.beginIncarnation('n', 1);
    await inA.heartbeats.record(heartbeat('n', 1));
    await inA.usage.seed({ months: [], bases: [] });
    await inA.usage.flush(report([[minuteOf(Date.now()), 1]]));
    await inA.usage.fold('n', 1);
    await inA.suspensions.remove('y');
    await inA.suspensions.put(suspension('x'));
    await inA.leases.exchange({ node: 'n', life: 1, sequence: 1, mayRaise: true, requests: [] });
    assert.deepEqual(await inB.leases.members(), []);
    assert.equal(await inB.table.meta(), undefined);
    assert.deepEqual(await inB.heartbeats.list(), []);
    assert.equal(await inB.usage.isSeeded(), false);
    assert.deepEqual((await inB.suspensions.read()).suspensions, []);
    const keys = await redis().keys('*');
    assert.ok(keys.length > 10);
    assert.deepEqual(
      keys.filter((key) => !key.startsWith(`weir:{${a.fleet}}:`)),
      [],
    );
  });

  test('drops records of the audit trail after two years, and skips records of a newer version', async () => {
    await using world = fixture();
    const { suspensions } = await world.connect();
    const { cutoffAudit } = keysFor(world.fleet);
    const record = ['suspension', encodeSuspension(suspension('old')), 'release', ''] as const;
    const daysAgo = (days: number): string => `${Date.now() - days * 86_400_000}-0`;
    await redis().xadd(cutoffAudit, daysAgo(732), ...record);
    await redis().xadd(cutoffAudit, daysAgo(730), ...record);
    await redis().xadd(cutoffAudit, daysAgo(1), 'suspension', record[1], 'release', '{"why":"from-the-future"}');
    await suspensions.put(suspension('new'));
    assert.equal(await redis().xlen(cutoffAudit), 3);
    assert.deepEqual(
      (await suspensions.audit()).map(({ suspension: { uid } }) => uid),
      ['new', 'old'],
    );
  });

  test('lists entries of a newer version as unreadable in reads and revisions', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const newer = { ...entry('b'), kind: 'from-the-future' } as unknown as ReturnType<typeof entry>;
    const changes = [put('a'), { kind: 'put', entry: newer } as const, put('c')];
    const position = await publish(store, { leader, predecessor: opened, changes });
    const copy = await store.table.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a'), entry('c')));
    assert.deepEqual(copy?.unreadable, ['node/b']);
    const stopped = new AbortController();
    for await (const revision of store.table.revisions({ after: opened, signal: stopped.signal })) {
      assert.deepEqual(revision.changes, [put('a'), put('c')]);
      assert.deepEqual(revision.unreadable, ['node/b']);
      assert.deepEqual(revision.position, position);
      stopped.abort();
    }
  });

  test('reads a revision of an older version without changedAt', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor: opened, changes: [put('a')], changedAt: 5 });
    const { changes } = keysFor(world.fleet);
    const [[streamId, fields] = ['', []]] = await redis().xrange(changes, '-', '+');
    const fieldIndex = fields.indexOf('changed-at');
    assert.deepEqual(fields.slice(fieldIndex, fieldIndex + 2), ['changed-at', '5']);
    await redis().unlink(changes);
    await redis().xadd(changes, streamId, ...fields.toSpliced(fieldIndex, 2));
    const stopped = new AbortController();
    for await (const revision of store.table.revisions({ after: opened, signal: stopped.signal })) {
      assert.ok(!('changedAt' in revision));
      assert.deepEqual(revision.changes, [put('a')]);
      stopped.abort();
    }
  });

  test('reads a list with an undecodable suspension as incomplete, and the suspension as not removed', async () => {
    await using world = fixture();
    const { suspensions } = await world.connect();
    for (const uid of ['a', 'b']) await suspensions.put(suspension(uid));
    await suspensions.markComplete();
    await redis().hset(keysFor(world.fleet).cutoffs, 'b', JSON.stringify({ v: 99, ...suspension('b') }), 'c', '{');
    const state = await suspensions.read();
    assert.deepEqual(state.suspensions, [suspension('a')]);
    assert.equal(state.completeSince, null);
    assert.deepEqual([...state.changes.keys()], ['a']);
  });

  test('lists a proxy whose heartbeat cannot be decoded as unreadable', async () => {
    await using world = fixture();
    const { heartbeats } = await world.connect();
    for (const node of ['a', 'b', 'c', 'd']) await heartbeats.record(heartbeat(node, 7));
    const writeState = (node: string, text: string): Promise<unknown> =>
      redis().hset(keysFor(world.fleet).proxy(node, 7), 'state', text);
    await writeState('a', '{"v":99,"node":5,"version":"2.0.0","listeners":"none"}');
    await writeState('b', '{');
    await writeState('c', 'null');
    const [a, b, c, d] = await heartbeats.list();
    assert.deepEqual(
      [a, b, c].map((each) => `${each?.node} ${each?.life} ${each?.version} ${each?.listeners.length}`),
      ['a 7 2.0.0 0', 'b 7 unknown 0', 'c 7 unknown 0'],
    );
    assert.match(
      a?.unreadable ?? '',
      /on node "a" has format 99, but the version of Weir that read it knows only format 2; /,
    );
    assert.match(b?.unreadable ?? '', /without a number/);
    assert.deepEqual(d, heartbeat('d', 7));
    await redis().unlink(keysFor(world.fleet).proxy('a', 7));
    assert.equal((await heartbeats.list()).length, 3, 'an unreadable proxy expires too');
  });

  test('does not send unchanged listeners again', async () => {
    await using world = fixture();
    const { heartbeats } = await world.connect();
    const { listeners } = heartbeat('n', 1);
    await heartbeats.record(heartbeat('n', 1, { listeners }));
    const key = keysFor(world.fleet).proxy('n', 1);
    // Replaces the stored chunk by an empty list. The empty list stays only if the next heartbeat does not send the chunk again.
    await redis().hset(key, 'chunk:0', '[]');
    await heartbeats.record(heartbeat('n', 1, { listeners, connections: 9 }));
    assert.deepEqual(await heartbeats.list(), [heartbeat('n', 1, { listeners: [], connections: 9 })]);
  });

  test('sends and reads only the changed chunks of many listeners', async () => {
    await using world = fixture();
    const [proxy, controller] = [(await world.connect()).heartbeats, (await world.connect()).heartbeats];
    const listener = (id: string, bound = true): ListenerReport => ({
      id,
      service: 'u',
      bound,
      listening: true,
      error: null,
    });
    const listeners = Array.from({ length: 1_000 }, (_, index) => listener(`l${index}`));
    await proxy.record(heartbeat('n', 1, { listeners }));
    await controller.list();
    const key = keysFor(world.fleet).proxy('n', 1);
    const chunks = (await redis().hkeys(key)).filter((field) => field.startsWith('chunk:'));
    for (const chunk of chunks) await redis().hset(key, chunk, 'not sent again');
    await proxy.record(heartbeat('n', 1, { listeners: listeners.with(3, listener('l3', false)) }));
    const sent = (await redis().hmget(key, ...chunks)).filter((text) => text !== 'not sent again');
    assert.equal(sent.length, 1);
    // Reading all chunks would fail, because the other chunks cannot be decoded.
    const [listed] = await controller.list();
    assert.equal(listed?.listeners.length, 1_000);
    assert.deepEqual(
      listed?.listeners.filter(({ bound }) => !bound).map(({ id }) => id),
      ['l3'],
    );
    assert.deepEqual(await (await world.connect()).heartbeats.list(), []);
  });

  test('expires minutes, hours and days, but no other usage keys', async () => {
    await using world = fixture();
    const { usage } = await world.connect();
    await usage.seed({ months: [], bases: [] });
    const minute = minuteOf(Date.now());
    await usage.flush(report([[minute, 1]]));
    await usage.flush(report([[minute, 2]]));
    const keys = keysFor(world.fleet).usage;
    for (const [length, minutes, keptMinutes] of [
      ['minute', 1, 2 * 1_440],
      ['hour', 60, 60 * 1_440],
      ['day', 1_440, 731 * 1_440],
    ] as const) {
      const block = Math.floor(minute / minutes / 120);
      const end = (block + 1) * 120 * minutes + keptMinutes;
      for (const service of ['u1', '']) {
        const key = keys.series({ tenant: 'shop', service }, length, block);
        assert.equal(await redis().expiretime(key), end * 60, key);
      }
    }
    const others = [
      keys.sum('shop', new Date(minute * 60_000).toISOString().slice(0, 7)),
      keys.bases('n1'),
      keys.names,
      keys.tenants,
      keys.nodes,
      keys.open,
    ];
    for (const key of others) assert.equal(await redis().ttl(key), -1, key);
  });

  test('a blocked follower notices a new epoch and a wipe within a second', async () => {
    await using world = fixture();
    const [leading, reading] = [await world.connect(), await world.connect()];
    for (const happen of [
      async () => void (await openEpochAsLeader(leading)),
      async () => void (await redis().unlink(keysFor(world.fleet).meta, keysFor(world.fleet).changes)),
    ]) {
      const { leader, position: opened } = await openEpochAsLeader(leading);
      const position = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
      const stopped = new AbortController();
      const revisions = reading.table.revisions({ after: position, signal: stopped.signal });
      const next = assert.rejects(revisions[Symbol.asyncIterator]().next(), { code: 'GAP' });
      await followerBlocks();
      const happened = performance.now();
      await happen();
      await next;
      assert.ok(performance.now() - happened < 1_000);
      stopped.abort();
      await followerEnds();
    }
  });

  test('a blocked watch of suspensions notices a rollback', async () => {
    await using world = fixture();
    const { suspensions } = await world.connect();
    await suspensions.put(suspension('a'));
    const stopped = new AbortController();
    const states = suspensions.watch(stopped.signal)[Symbol.asyncIterator]();
    await states.next();
    const next = states.next();
    await followerBlocks();
    await redis().hset(keysFor(world.fleet).cutoffMeta, 'id', 'another history');
    assert.equal((await next).value?.suspensions.length, 1);
    stopped.abort();
  });

  test('keeps fewer revisions if their changes are large', async () => {
    const weight = Buffer.byteLength(encodeEntry(entry('a'))) + 'node/a'.length;
    await using world = fixture({ keptBytes: 5 * weight });
    const store = await world.connect();
    const kept = (): Promise<number> => redis().xlen(keysFor(world.fleet).changes);
    const grown = async (from: TablePosition, leader: number, times: number): Promise<TablePosition[]> => {
      const positions = [from];
      for (let version = 0; version < times; version += 1) {
        const predecessor = positions.at(-1) ?? from;
        positions.push(await publish(store, { leader, predecessor, changes: [put('a', version % 10)] }));
        const most = Math.min(version + 1, 10);
        assert.ok((await kept()) <= most && (await kept()) >= Math.min(version + 1, 5));
      }
      return positions;
    };
    const { leader, position: opened } = await openEpochAsLeader(store);
    const positions = await grown(opened, leader, 23);
    const next = async (at: number): Promise<unknown> => {
      const after = positions.at(at) ?? assert.fail('no such revision');
      const signal = AbortSignal.timeout(10_000);
      for await (const { position } of store.table.revisions({ after, signal })) return position;
      return undefined;
    };
    await assert.rejects(next(-12), { code: 'GAP' });
    assert.deepEqual(await next(-6), positions.at(-5));
    // A new epoch resets the number of kept bytes.
    const again = await store.table.openEpoch({ leader, id: 'next' });
    await grown(again.kind === 'published' ? again.position : assert.fail(again.kind), leader, 12);
  });

  test('stores the complete encoded entry', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: predecessor } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor, changes: [put('a')] });
    assert.equal(await redis().hget(keysFor(world.fleet).table, 'node/a'), encodeEntry(entry('a')));
  });

  async function followerBlocks(): Promise<void> {
    await eventually(async () => assert.match(await redis().info('clients'), /blocked_clients:1\r/));
  }

  async function followerEnds(): Promise<void> {
    await eventually(async () => assert.match(await redis().info('clients'), /blocked_clients:0\r/));
  }

  test('seeds the ledger of a large fleet in one call', async () => {
    await using world = fixture({ timeoutMs: 20_000 });
    const { usage } = await world.connect();
    const counters = { receivedBytes: 1, sentBytes: 0, connections: 0, requests: 0 };
    const bases = Array.from({ length: 17_000 }, (_, index) => ({
      service: `u${index}`,
      tenant: 'shop',
      node: 'n',
      life: 1,
      counters,
    }));
    assert.equal(await usage.seed({ months: [], bases }), 'seeded');
    assert.equal((await usage.exportSeed([])).bases.length, bases.length);
  });
});
