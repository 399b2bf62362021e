// Where private keys lie in Redis, and what becomes of certificates when they are not to be had.
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

  test('lie in the hash of keys with their digests, and nowhere else', async () => {
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

  test('of those before a new epoch none is left, and of a certificate without a key there is none', async () => {
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

  test('do not count among the bytes of the changes that are kept', async () => {
    await using world = fixture();
    const store = await world.connect();
    const { leader, position: predecessor } = await openEpochAsLeader(store);
    await publish(store, { leader, predecessor, changes: [putCertificate('u1')] });
    const { sealedKey: _sealedKey, ...rest } = certificate('u1');
    const bytes = Buffer.byteLength(encodeEntry(rest)) + rest.id.length;
    assert.equal(await redis().hget(keysFor(world.fleet).meta, 'bytes'), String(bytes));
  });

  test('one that is lost, or is of another digest, makes its certificate unreadable and nothing else', async (t) => {
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

  test('a leader that finds one lost publishes the whole anew, and followers go on with what they knew until then', async (t) => {
    await using world = fixture();
    const [first, second, reading] = [await world.connect(), await world.connect(), await world.connect()];
    const table = tableOf([certificate('u1'), entry('a')]);
    const before = new TablePublisher({ store: first.table });
    await before.becomeLeader();
    await before.publish(table);
    const told = startFollowing(t, reading);
    await eventually(() => assert.deepEqual(contentOf(told.table), contentOf(table)));
    await redis().del(keysFor(world.fleet).keys);
    const after = new TablePublisher({ store: second.table });
    assert.deepEqual((await after.becomeLeader())?.unreadable, ['certificate/u1']);
    const outcome = await after.publish(table);
    assert.ok(outcome.kind === 'published' && outcome.newEpoch);
    await eventually(() => assert.equal(told.epoch, outcome.position.epoch));
    assert.deepEqual(contentOf(told.table), contentOf(table));
    assert.deepEqual(contentOf((await first.table.read())?.table), contentOf(table));
    assert.deepEqual(told.unreadable, []);
  });

  test('one that a later revision replaced or deleted is not missed: that revision brings what is to be known', async (t) => {
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

  test('one that is replaced after the table was read and before it: the table is read on to where the key is', async (t) => {
    await using world = fixture();
    const leading = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const changes = [putCertificate('u1'), putCertificate('u2'), put('a')];
    let predecessor = await publish(leading, { leader, predecessor: opened, changes });
    const later = [
      [putCertificate('u1', 1), put('a', 1)],
      [putCertificate('u1', 2), removeCertificate('u2'), put('a', 2)],
    ];
    const reading = await tableOfItsOwn(t, world, async () => {
      const next = later.shift();
      if (next !== undefined) predecessor = await publish(leading, { leader, predecessor, changes: next });
    });
    const copy = await reading.read();
    assert.deepEqual(copy?.position, predecessor);
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(certificate('u1', 2), entry('a', 2)));
    assert.deepEqual(copy?.unreadable, []);
  });

  test('of one that is replaced again and again the certificate counts as unreadable, and comes with its revision', async (t) => {
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
    const reading = await tableOfItsOwn(t, world, renew);
    const copy = await reading.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a')));
    assert.deepEqual(copy?.unreadable, ['certificate/u1']);
    const [revision] = await readRevisionsAfter(t, leading, copy?.position ?? opened, 1);
    assert.deepEqual(revision?.changes, [putCertificate('u1', version - 1), put('a')]);
  });

  test('what a leader left half is found as it lies: certificates with their keys, those without not at all', async () => {
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

  /** Of which `beforeKeys` is told each time that it is about to read keys. */
  async function tableOfItsOwn(
    t: TestContext,
    { fleet }: RedisFixture,
    beforeKeys: () => Promise<void>,
  ): Promise<RedisTable> {
    const target = targetFor({ url: url() });
    const log = silentLogger();
    const connection = new RedisConnection({
      target,
      key: keysFor(fleet).meta,
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
      probe: (ask) => reader.probe(ask),
      async join(ask, certificates) {
        await beforeKeys();
        return reader.join(ask, certificates);
      },
    };
    return new RedisTable(connection, { keys, keyReader, retention: { revisions: 100, bytes: 1_000_000 } });
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
