// The Redis users of docs/redis.md over TLS. Each user may do exactly what its process needs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, type TestContext, test } from 'node:test';
import { minuteOf, type TablePosition } from '@weir/model';
import { Secret, silentLogger } from '@weir/runtime';
import { makeCertificate } from '@weir/testkit';
import { type Redis as RedisServer, requireProgram, startRedis } from '@weir/tools';
import { Redis } from 'ioredis';
import type { Store } from '../../src/contract.ts';
import { inspectRedis } from '../../src/redis/connection/inspect-redis.ts';
import type { RedisAccess } from '../../src/redis/connection/redis-target.ts';
import { keysFor, redisUsersFor } from '../../src/redis/keys.ts';
import { openRedisStore, type RedisStoreOptions } from '../../src/redis/open-redis-store.ts';
import {
  certificate,
  contentOf,
  contentOfEntries,
  heartbeat,
  newId,
  openEpochAsLeader,
  publish,
  putCertificate,
  report,
  suspension,
} from '../contract/sample-data.ts';
import { type CaFile, createCaFile } from './fixtures/ca-file.ts';

const FLEET = 'weir';
const page = readFileSync(new URL('../../../../docs/redis.md', import.meta.url), 'utf8');

describe('the Redis users of docs/redis.md', requireProgram('redis'), () => {
  let server: RedisServer | undefined;
  let admin: Redis | undefined;
  let authority: CaFile | undefined;
  const ca = makeCertificate({ name: 'ca', isAuthority: true });
  const atServer = () => ({ host: '127.0.0.1', port: server?.port ?? 0, tls: { ca: ca.certificate } });
  before(async () => {
    authority = createCaFile(ca);
    server = await startRedis({ certificate: makeCertificate({ name: 'redis', names: ['127.0.0.1'], issuer: ca }) });
    admin = new Redis(atServer());
    for (const [user, rules] of Object.entries(redisUsersFor(FLEET))) {
      await admin.call('ACL', 'SETUSER', user, 'on', '>PASSWORD', ...rules.split(' '));
    }
  });
  after(async () => {
    admin?.disconnect();
    await server?.close();
    await authority?.close();
  });
  const accessOf = (user: string): RedisAccess => ({
    url: `rediss://${server?.host}:${server?.port}`,
    username: user,
    password: new Secret('PASSWORD'),
    ca: authority?.path,
  });
  const openAs = async (t: TestContext, user: string, options: Partial<RedisStoreOptions> = {}): Promise<Store> => {
    const store = await openRedisStore({ ...accessOf(user), fleet: FLEET, log: silentLogger(), ...options });
    t.after(() => store.close());
    return store;
  };

  test('have the rules of redisUsersFor, which the chart uses', () => {
    const commands = Object.entries(redisUsersFor(FLEET)).map(
      ([user, rules]) => `ACL SETUSER ${user} on >PASSWORD ${rules}`,
    );
    assert.deepEqual(page.match(/^ACL SETUSER .*$/gm), commands);
  });

  test('may do everything that their process does', async (t) => {
    const controller = await openAs(t, 'weir-controller');
    const proxy = await openAs(t, 'weir-proxy');
    const console = await openAs(t, 'weir-console', { privateKeyAccess: 'none' });

    const { leader, position: predecessor } = await openEpochAsLeader(controller);
    await publish(controller, { leader, predecessor, changes: [putCertificate('u1')] });
    assert.deepEqual(contentOf(await controller.table.readPartial()), contentOfEntries(certificate('u1')));
    await controller.usage.seed({ months: [], bases: [] });
    await controller.suspensions.put(suspension('a'));
    await controller.suspensions.markComplete();

    for (const user of Object.keys(redisUsersFor(FLEET))) {
      const client = new Redis({ ...atServer(), username: user, password: 'PASSWORD' });
      t.after(() => client.disconnect());
      // In a cluster, every process finds its server with this command.
      assert.equal(await client.exists(keysFor(FLEET).meta), 1);
    }

    const { sealedKey: _sealedKey, ...shown } = certificate('u1');
    for (const [store, entry] of [
      [controller, certificate('u1')],
      [proxy, certificate('u1')],
      [console, shown],
    ] as const) {
      assert.ok((await store.table.meta())?.complete);
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry));
      assert.deepEqual(await firstChanges(store, predecessor), [{ kind: 'put', entry }]);
      assert.equal((await store.suspensions.read()).suspensions.length, 1);
      for await (const state of store.suspensions.watch(AbortSignal.timeout(5_000))) {
        assert.notEqual(state.completeSince, null);
        break;
      }
    }

    await proxy.heartbeats.beginIncarnation('n1', 7);
    await proxy.heartbeats.record(heartbeat('n1', 7));
    const minute = minuteOf(Date.now());
    assert.equal((await proxy.usage.flush(report([[minute, 1]]))).kind, 'accepted');
    for (const store of [controller, console]) {
      assert.equal((await store.heartbeats.list()).length, 1);
      assert.equal((await store.heartbeats.knownNodes()).size, 1);
      const [month = ''] = await store.usage.periods('shop', 'month');
      assert.equal((await store.usage.rows(month)).length, 1);
      assert.equal((await store.usage.exportSeed([month])).bases.length, 1);
      assert.ok(await store.usage.isSeeded());
    }
    const lease = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' } as const;
    const claim = { demand: 3, weight: 1, floor: 0, used: 0 };
    const requests = [{ ...lease, limit: 9, held: 2, wanted: 2, claim }];
    const exchange = { node: 'n1', life: 7, sequence: 1, mayRaise: true, requests };
    assert.equal((await proxy.leases.exchange(exchange))[0]?.share, 2);
    await controller.leases.keep('n1', 7);
    for (const store of [controller, console]) assert.equal((await store.leases.members()).length, 1);
    await proxy.leases.release('n1', 7);
    assert.deepEqual(await controller.leases.members(), []);
    await proxy.heartbeats.remove('n1', 7);
    await controller.usage.fold('n1', 7);
    await console.suspensions.put(suspension('b'));
    await console.suspensions.remove('b', { suspension: suspension('b'), why: 'resumed', by: 'alice' });
    await controller.suspensions.remove('a', { suspension: suspension('a'), why: 'deleted' });
    assert.equal((await console.suspensions.audit()).length, 4);
    assert.equal((await inspectRedis({ ...accessOf('weir-console'), fleet: FLEET })).role, 'primary');
    // Ignores `CONFIG GET`: `weir doctor` tries to read the configuration, but works without it.
    const refusals = (await admin?.call('ACL', 'LOG')) as unknown[][];
    assert.deepEqual(
      refusals.map((entry) => entry[entry.indexOf('object') + 1]).filter((object) => object !== 'config|get'),
      [],
    );
  });

  test('a proxy may not write the table or suspensions, and the console may not read private keys', async (t) => {
    const proxy = await openAs(t, 'weir-proxy');
    const refused = { code: 'REFUSED', message: /does not permit/ };
    await assert.rejects(proxy.table.claimLeader(), refused);
    await assert.rejects(proxy.table.openEpoch({ leader: 1, id: newId() }), refused);
    await assert.rejects(proxy.suspensions.put(suspension('x')), refused);
    const console = await openAs(t, 'weir-console', { privateKeyAccess: 'none' });
    await assert.rejects(console.table.claimLeader(), refused);
    await assert.rejects(console.usage.fold('n1', 1), refused);
    await assert.rejects(console.leases.release('n1', 1), refused);
    const client = new Redis({ ...atServer(), username: 'weir-console', password: 'PASSWORD' });
    t.after(() => client.disconnect());
    for (const readKeys of [
      () => client.hgetall(keysFor(FLEET).keys),
      () => client.dump(keysFor(FLEET).keys),
      () => client.eval('return redis.call("HGETALL", KEYS[1])', 1, keysFor(FLEET).keys),
      () => client.eval('return redis.call("HGETALL", ARGV[1])', 0, keysFor(FLEET).keys),
      () => client.copy(keysFor(FLEET).keys, `${keysFor(FLEET).cutoffs}-copy`),
    ]) {
      await assert.rejects(readKeys, /NOPERM|ACL failure|can't access/);
    }
  });
});

async function firstChanges(store: Store, after: TablePosition): Promise<unknown> {
  for await (const { changes } of store.table.revisions({ after, signal: AbortSignal.timeout(5_000) })) return changes;
  return undefined;
}
