// The storage of private keys in Redis, and the effect of missing keys on certificates.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Change, encodeEntry, tableOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { RedisConnection } from '../../src/redis/connection/redis-connection.ts';
import { targetFor } from '../../src/redis/connection/redis-target.ts';
import { keysFor } from '../../src/redis/keys.ts';
import { type PrivateKeyJoiner, PrivateKeyReader } from '../../src/redis/private-key-reader.ts';
import { RedisTable } from '../../src/redis/redis-table.ts';
import {
  certificate,
  contentOf,
  contentOfEntries,
  entry,
  newId,
  openEpochAsLeader,
  publish,
  put,
  putCertificate,
  removeCertificate,
} from '../contract/sample-data.ts';
import type { RedisFixture } from './fixtures/redis-fixture.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';
import { readRevisionsAfter, startFollowing } from './fixtures/table-followers.ts';

describe('private keys in Redis', requireProgram('redis'), () => {
  const { redis, url, fixture } = useSharedRedis();
  const keysIn = ({ fleet }: RedisFixture): Promise<Record<string, string>> => redis().hgetall(keysFor(fleet).keys);

  test('are stored with their digests in the hash of keys only', async () => {
    await redis().flushall();
    await using world = fixture();
    const publisher = new TablePublisher({ store: (await world.connect()).table, maxChangesPerRevision: 2 });
    await publisher.becomeLeader();
    await publisher.publish(tableOf([certificate('u1'), certificate('u2'), certificate('u3'), entry('a')]));
    await publisher.publish(tableOf([certificate('u1', 1), certificate('u2'), entry('a')]));
    assert.deepEqual(await keysIn(world), {
      'certificate/u1': 'digest-1 1.sealed-u1-1',
      'certificate/u2': 'digest-0 1.sealed-u2-0',
    });
    const { table, keys } = keysFor(world.fleet);
    const { sealedKey: _sealedKey, ...rest } = certificate('u1', 1);
    assert.equal(await redis().hget(table, 'certificate/u1'), encodeEntry(rest));
    for (const key of await redis().keys('*')) {
      const text = await contentIn(key);
      assert.equal(text.includes('sealed'), key === keys, key);
    }
  });

  test('are deleted by a new epoch and by a certificate without a key', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const first = await publish(store, {
      leader,
      predecessor: opened,
      changes: [putCertificate('u1'), putCertificate('u2')],
    });
    const { sealedKey: _sealedKey, ...bare } = certificate('u1', 1);
    await publish(store, { leader, predecessor: first, changes: [{ kind: 'put', entry: bare }] });
    assert.deepEqual(Object.keys(await keysIn(world)), ['certificate/u2']);
    assert.deepEqual((await store.table.read())?.unreadable, ['certificate/u1']);
    await store.table.openEpoch({ leader, id: newId() });
    assert.deepEqual(await keysIn(world), {});
  });

  test('do not count as bytes of the kept changes', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: predecessor } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor, changes: [putCertificate('u1')] });
    const { sealedKey: _sealedKey, ...rest } = certificate('u1');
    const bytes = Buffer.byteLength(encodeEntry(rest)) + rest.id.length;
    assert.equal(await redis().hget(keysFor(world.fleet).meta, 'bytes'), String(bytes));
  });

  test('make only their certificate unreadable if lost or of another digest', async (t) => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(store);
    const changes = [putCertificate('u1'), putCertificate('u2'), putCertificate('u3'), put('a')];
    await publish(store, { leader, predecessor: opened, changes });
    const { keys } = keysFor(world.fleet);
    await redis().hdel(keys, 'certificate/u1');
    await redis().hset(keys, 'certificate/u2', 'digest-7 1.sealed-of-another');
    const copy = await store.table.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(certificate('u3'), entry('a')));
    assert.deepEqual([...(copy?.unreadable ?? [])].sort(), ['certificate/u1', 'certificate/u2']);
    const [revision] = await readRevisionsAfter(t, store, opened, 1);
    assert.deepEqual(revision?.changes, [putCertificate('u3'), put('a')]);
    assert.deepEqual([...(revision?.unreadable ?? [])].sort(), ['certificate/u1', 'certificate/u2']);
    assert.deepEqual(contentOf(await store.table.readPartial()), contentOfEntries(certificate('u3'), entry('a')));
  });

  test('are published again by a leader that finds one lost, while followers keep the known entries', async (t) => {
    await using world = fixture();
    const [first, second, reading] = [await world.connect(), await world.connect(), await world.connect()];
    const table = tableOf([certificate('u1'), entry('a')]);
    const before = new TablePublisher({ store: first.table });
    await before.becomeLeader();
    await before.publish(table);
    const followed = startFollowing(t, reading);
    await eventually(() => assert.deepEqual(contentOf(followed.table), contentOf(table)));
    await redis().del(keysFor(world.fleet).keys);
    const after = new TablePublisher({ store: second.table });
    assert.deepEqual((await after.becomeLeader())?.unreadable, ['certificate/u1']);
    const outcome = await after.publish(table);
    assert.ok(outcome.kind === 'published' && outcome.newEpoch);
    await eventually(() => assert.equal(followed.epoch, outcome.position.epoch));
    assert.deepEqual(contentOf(followed.table), contentOf(table));
    assert.deepEqual(contentOf((await first.table.read())?.table), contentOf(table));
    assert.deepEqual(followed.unreadable, []);
  });

  test('are not reported as missing if a later revision replaced or deleted them', async (t) => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(store);
    let predecessor = opened;
    const steps: Change[][] = [
      [putCertificate('u1'), putCertificate('u2'), put('a')],
      [removeCertificate('u2')],
      [putCertificate('u1', 1)],
    ];
    for (const changes of steps) predecessor = await publish(store, { leader, predecessor, changes });
    const revisions = await readRevisionsAfter(t, store, opened, 3);
    assert.deepEqual(
      revisions.map(({ changes, unreadable }) => ({ changes, unreadable })),
      [[put('a')], [removeCertificate('u2')], [putCertificate('u1', 1)]].map((changes) => ({
        changes,
        unreadable: [],
      })),
    );
  });

  test('are consistent with the table if replaced between the reads of table and keys', async (t) => {
    await using world = fixture();
    const leading = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const changes = [putCertificate('u1'), putCertificate('u2'), put('a')];
    let predecessor = await publish(leading, { leader, predecessor: opened, changes });
    const later = [
      [putCertificate('u1', 1), put('a', 1)],
      [putCertificate('u1', 2), removeCertificate('u2'), put('a', 2)],
    ];
    const reading = await openSeparateTable(t, world, async () => {
      const next = later.shift();
      if (next !== undefined) predecessor = await publish(leading, { leader, predecessor, changes: next });
    });
    const copy = await reading.read();
    assert.deepEqual(copy?.position, predecessor);
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(certificate('u1', 2), entry('a', 2)));
    assert.deepEqual(copy?.unreadable, []);
  });

  test('make a certificate unreadable until its revision if replaced during every read', async (t) => {
    await using world = fixture();
    const leading = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(leading);
    let version = 0;
    let predecessor = opened;
    const renew = async (): Promise<void> => {
      predecessor = await publish(leading, {
        leader,
        predecessor,
        changes: [putCertificate('u1', version++), put('a')],
      });
    };
    await renew();
    const reading = await openSeparateTable(t, world, renew);
    const copy = await reading.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a')));
    assert.deepEqual(copy?.unreadable, ['certificate/u1']);
    const [revision] = await readRevisionsAfter(t, leading, copy?.position ?? opened, 1);
    assert.deepEqual(revision?.changes, [putCertificate('u1', version - 1), put('a')]);
  });

  test('are part of a partial table, without certificates whose key is missing', async () => {
    await using world = fixture();
    const [first, second] = [await world.connect(), await world.connect()];
    const { leader, position: opened } = await openEpochAsLeader(first);
    const changes = [putCertificate('u1'), putCertificate('u2'), put('a')];
    await publish(first, { leader, predecessor: opened, changes, complete: false });
    await redis().hdel(keysFor(world.fleet).keys, 'certificate/u2');
    const next = new TablePublisher({ store: second.table });
    assert.equal(await next.becomeLeader(), undefined);
    assert.deepEqual(contentOf(await second.table.readPartial()), contentOfEntries(certificate('u1'), entry('a')));
    const table = tableOf([certificate('u1'), certificate('u2'), entry('a')]);
    await next.publish(table);
    assert.deepEqual(contentOf((await first.table.read())?.table), contentOf(table));
  });

  /** Opens a table on a separate connection. Calls `beforeKeys` before each read of private keys. */
  async function openSeparateTable(
    t: TestContext,
    { fleet }: RedisFixture,
    beforeKeys: () => Promise<void>,
  ): Promise<RedisTable> {
    const target = targetFor({ url: url() });
    const log = silentLogger();
    const connection = new RedisConnection({
      target,
      slotKey: keysFor(fleet).meta,
      log,
      clock: systemClock,
      random: Math.random,
      timeoutMs: 2_000,
    });
    t.after(() => connection.close());
    await connection.open();
    const keys = keysFor(fleet);
    const reader = new PrivateKeyReader({ keys, access: 'read', log, where: target.displayName });
    const keyReader: PrivateKeyJoiner = {
      isRefused: false,
      probe: (call) => reader.probe(call),
      async join(call, certificates) {
        await beforeKeys();
        return reader.join(call, certificates);
      },
    };
    return new RedisTable(connection.callsOf('table'), {
      keys,
      keyReader,
      retention: { revisions: 100, bytes: 1_000_000 },
    });
  }

  async function contentIn(key: string): Promise<string> {
    const client = redis();
    switch (await client.type(key)) {
      case 'hash':
        return JSON.stringify(await client.hgetall(key));
      case 'stream':
        return JSON.stringify(await client.xrange(key, '-', '+'));
      default:
        return assert.fail(`${key} is of another type`);
    }
  }
});
