// What a process does whose user of Redis has a right to all of the table but `keys`.
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

  test('everything else is served; it is said once, and they are taken up when the ACL lets', async (t) => {
    await using world = fixture();
    const { keys } = keysFor(world.fleet);
    const lines: string[] = [];
    const log = createLogger({
      name: 'test',
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    });
    const leading = await world.connect();
    const barred = await openAs(t, world, { log });
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const changes = [putCertificate('u1'), putCertificate('u2'), put('a')];
    const first = await publish(leading, { leader, predecessor: opened, changes });
    const told = startFollowing(t, barred);
    await eventually(() => assert.deepEqual(contentOf(told.table), contentOfEntries(entry('a'))));
    assert.deepEqual(told.unreadable.sort(), ['certificate/u1', 'certificate/u2']);
    await publish(leading, { leader, predecessor: first, changes: [putCertificate('u1', 1), put('a', 1)] });
    await eventually(() => assert.deepEqual(contentOf(told.table), contentOfEntries(entry('a', 1))));
    assert.equal(barred.connection, 'ready');
    const warnings = lines.filter((line) => line.includes('"warn"'));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /"REFUSED"/);
    assert.ok(warnings[0]?.includes(`does not permit this user to read private keys; extend its ACL by %R~${keys}`));
    assert.ok(!lines.join('').includes('sealed'));

    await redis().call('ACL', 'SETUSER', 'barred', `%R~${keys}`);
    const all = contentOfEntries(certificate('u1', 1), certificate('u2'), entry('a', 1));
    await eventually(() => assert.deepEqual(contentOf(told.table), all));
  });

  test('a leader is refused in words, and writes nothing', async (t) => {
    await using world = fixture();
    const { leader, position: predecessor } = await openEpochAsLeader(await world.connect());
    const { meta, table, changes } = keysFor(world.fleet);
    const written = [meta, table, changes];
    const barred = await openAs(t, world, { rights: ['+@write', ...written.map((key) => `~${key}`)] });
    const publication = { leader, predecessor, id: newId(), changes: [putCertificate('u1')], complete: true };
    await assert.rejects(barred.table.publish(publication), { code: 'REFUSED', message: /extend the ACL/ });
    assert.equal(await barred.table.readPartial(), undefined);
  });

  test('they are not asked for: where there are no certificates, and by one who wants none', async (t) => {
    await using world = fixture();
    const leading = await world.connect();
    const { leader, position: opened } = await openEpochAsLeader(leading);
    const [plain, content] = [await openAs(t, world), await openAs(t, world, { privateKeyAccess: 'none' })];
    await redis().call('ACL', 'LOG', 'RESET');
    const first = await publish(leading, { leader, predecessor: opened, changes: [put('a')] });
    for (const store of [plain, content]) {
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a')));
      await store.table.readPartial();
      assert.deepEqual((await readRevisionsAfter(t, store, opened, 1))[0]?.changes, [put('a')]);
    }
    const { sealedKey: _sealedKey, ...shown } = certificate('u1');
    await publish(leading, { leader, predecessor: first, changes: [putCertificate('u1')] });
    const copy = await content.table.read();
    assert.deepEqual(contentOf(copy?.table), contentOfEntries(entry('a'), shown));
    assert.deepEqual(copy?.unreadable, []);
    assert.deepEqual(await readRevisionsAfter(t, content, first, 1).then(([one]) => one?.changes), [
      { kind: 'put', entry: shown },
    ]);
    assert.deepEqual(await redis().call('ACL', 'LOG'), []);
  });

  /** A user of all that reading the table needs but the keys, and of more rights. */
  async function openAs(
    t: TestContext,
    { fleet }: RedisFixture,
    { rights = [], ...options }: Partial<RedisStoreOptions> & { readonly rights?: readonly string[] } = {},
  ): Promise<Store> {
    const { meta, table, changes } = keysFor(fleet);
    const readable = [meta, table, changes].map((key) => `%R~${key}`);
    const commands = ['+@read', '+@connection', '+@transaction', '+@scripting', '+info'];
    await redis().call('ACL', 'SETUSER', 'barred', 'reset', 'on', '>pw', ...commands, ...readable, ...rights);
    const barred = url().replace('redis://', 'redis://barred:pw@');
    const store = await openRedisStore({ url: barred, fleet, log: silentLogger(), ...options });
    t.after(() => store.close());
    return store;
  }
});
