// Tests a process whose Redis user may read the table but not the private keys.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createLogger, silentLogger } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import type { Store } from '../../src/contract.ts';
import { keysFor } from '../../src/redis/keys.ts';
import { openRedisStore, type RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
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
} from '../contract/sample-data.ts';
import type { RedisFixture } from './fixtures/redis-fixture.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';
import { readRevisionsAfter, startFollowing } from './fixtures/table-followers.ts';

describe('a user who may not read private keys', requireProgram('redis'), () => {
  const { redis, url, fixture } = useSharedRedis();

  test('gets everything else, with one warning, and the keys when the ACL permits them', async (t) => {
    await using world = fixture();
    const { keys } = keysFor(world.fleet);
    const lines: string[] = [];
    const log = createLogger({
      name: 'test',
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    });
    const leading = await world.connect();
    const restricted = await openAs(t, world, { log });
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const changes = [putCertificate('u1'), putCertificate('u2'), put('a')];
    const first = await publish(leading, { leader, predecessor: opened, changes });
    const followed = startFollowing(t, restricted);
    await eventually(() => assert.deepEqual(contentOf(followed.table), contentOfEntries(entry('a'))));
    assert.deepEqual(followed.unreadable.sort(), ['certificate/u1', 'certificate/u2']);
    await publish(leading, { leader, predecessor: first, changes: [putCertificate('u1', 1), put('a', 1)] });
    await eventually(() => assert.deepEqual(contentOf(followed.table), contentOfEntries(entry('a', 1))));
    assert.equal(restricted.connection, 'ready');
    const warnings = lines.filter((line) => line.includes('"warn"'));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /"REFUSED"/);
    assert.ok(warnings[0]?.includes(`does not permit this user to read private keys; add %R~${keys} to its ACL`));
    assert.ok(!lines.join('').includes('sealed'));

    await redis().call('ACL', 'SETUSER', 'restricted', `%R~${keys}`);
    const all = contentOfEntries(certificate('u1', 1), certificate('u2'), entry('a', 1));
    await eventually(() => assert.deepEqual(contentOf(followed.table), all));
  });

  test('refuses a write of the leader with an explanation and writes nothing', async (t) => {
    await using world = fixture();
    const { leader, position: predecessor } = await openEpochAsLeader(await world.connect());
    const { meta, table, changes } = keysFor(world.fleet);
    const written = [meta, table, changes];
    const restricted = await openAs(t, world, { rights: ['+@write', ...written.map((key) => `~${key}`)] });
    const publication = { leader, predecessor, id: newId(), changes: [putCertificate('u1')], complete: true };
    await assert.rejects(restricted.table.publish(publication), { code: 'REFUSED', message: /extend the ACL/ });
    assert.equal(await restricted.table.readPartial(), undefined);
  });

  test('does not read keys without certificates or with privateKeyAccess none', async (t) => {
    await using world = fixture();
    const leading = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const [withKeys, withoutKeys] = [await openAs(t, world), await openAs(t, world, { privateKeyAccess: 'none' })];
    await redis().call('ACL', 'LOG', 'RESET');
    const first = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
    for (const store of [withKeys, withoutKeys]) {
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a')));
      await store.table.readPartial();
      assert.deepEqual((await readRevisionsAfter(t, store, opened, 1))[0]?.changes, [put('a')]);
    }
    const { sealedKey: _sealedKey, ...shown } = certificate('u1');
    await publish(leading, { leader, predecessor: first, changes: [putCertificate('u1')] });
    const copy = await withoutKeys.table.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a'), shown));
    assert.deepEqual(copy?.unreadable, []);
    assert.deepEqual(await readRevisionsAfter(t, withoutKeys, first, 1).then(([revision]) => revision?.changes), [
      { kind: 'put', entry: shown },
    ]);
    assert.deepEqual(await redis().call('ACL', 'LOG'), []);
  });

  /** Opens the store as a Redis user that may read the table but not the private keys, with optional further rights. */
  async function openAs(
    t: TestContext,
    { fleet }: RedisFixture,
    { rights = [], ...options }: Partial<RedisStoreOptions> & { readonly rights?: readonly string[] } = {},
  ): Promise<Store> {
    const { meta, table, changes } = keysFor(fleet);
    const readable = [meta, table, changes].map((key) => `%R~${key}`);
    const commands = ['+@read', '+@connection', '+@transaction', '+@scripting', '+info'];
    await redis().call('ACL', 'SETUSER', 'restricted', 'reset', 'on', '>pw', ...commands, ...readable, ...rights);
    const restricted = url().replace('redis://', 'redis://restricted:pw@');
    const store = await openRedisStore({ url: restricted, fleet, log: silentLogger(), ...options });
    t.after(() => store.close());
    return store;
  }
});
