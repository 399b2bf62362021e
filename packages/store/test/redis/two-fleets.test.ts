// Two fleets in one Redis, with the same names of nodes, tenants, Services and Suspensions, and with separate Redis users.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { monthOf, tableOf } from '@weir/model';
import { Secret, silentLogger } from '@weir/runtime';
import { type Redis as RedisServer, requireProgram, startRedis } from '@weir/tools';
import { Redis } from 'ioredis';
import type { Store } from '../../src/contract.ts';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { type RedisUser, redisUsersFor } from '../../src/redis/keys.ts';
import { openRedisStore } from '../../src/redis/open-redis-store.ts';
import { contentOf, contentOfEntries, entry, heartbeat, report, suspension } from '../contract/sample-data.ts';

const FLEETS = ['weir', 'weir-2'] as const;
const USERS = Object.keys(redisUsersFor('weir')) as RedisUser[];
const MINUTE = 29_000_000;

describe('two fleets in one Redis', requireProgram('redis'), () => {
  let server: RedisServer;
  let admin: Redis;
  before(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    for (const fleet of FLEETS) {
      for (const [user, rules] of Object.entries(redisUsersFor(fleet)))
        await admin.call('ACL', 'SETUSER', `${user}.${fleet}`, 'on', '>PASSWORD', ...rules.split(' '));
    }
  });
  after(async () => {
    admin?.disconnect();
    await server?.close();
  });
  const open = (fleet: string, username: string): Promise<Store> =>
    openRedisStore({
      url: server.url,
      username,
      password: new Secret('PASSWORD'),
      fleet,
      log: silentLogger(),
      privateKeyAccess: 'none',
    });

  test('share nothing, and the uninstallation of one fleet leaves the other', async (t) => {
    const publishers: TablePublisher[] = [];
    const stores: Store[] = [];
    for (const [index, fleet] of FLEETS.entries()) {
      const store = await open(fleet, `weir-controller.${fleet}`);
      t.after(() => store.close());
      stores.push(store);
      const publisher = new TablePublisher({ store: store.table });
      publishers.push(publisher);
      await publisher.becomeLeader();
      await publisher.publish(tableOf([entry('a', index)]));
      await store.usage.seed({ months: [], bases: [] });
      await store.usage.flush(report([[MINUTE, 100 + index]], { node: 'n', life: 7 }));
      await store.heartbeats.record(heartbeat('n', 7, { connections: index }));
      await store.suspensions.put(suspension('s', { message: fleet }));
    }
    for (const [index, store] of stores.entries()) {
      assert.deepEqual(contentOf((await store.table.read())?.table), contentOfEntries(entry('a', index)));
      const [row, ...otherRows] = await store.usage.rows(monthOf(MINUTE * 60_000));
      assert.deepEqual([row?.counters.receivedBytes, otherRows], [100 + index, []]);
      const beats = await store.heartbeats.list();
      assert.deepEqual(
        beats.map(({ connections }) => connections),
        [index],
      );
      const { suspensions } = await store.suspensions.read();
      assert.deepEqual(
        suspensions.map(({ message }) => message),
        [FLEETS[index]],
      );
      const [grant] = await store.leases.exchange({
        node: 'n',
        life: 7,
        sequence: 1,
        mayRaise: true,
        requests: [
          {
            owner: { kind: 'tenant', name: 'shop' },
            resource: 'connections',
            limit: 10,
            claim: { demand: 10, weight: 1, floor: 0, used: 10 },
            held: 10,
            wanted: 10,
          },
        ],
      });
      assert.deepEqual(grant, { share: 10, others: [], rank: 0 });
    }
    const [first] = publishers;
    const kept = await contentOfFleet('weir-2');
    await first?.publish(tableOf([]));
    await stores[0]?.suspensions.remove('s');
    assert.deepEqual(await contentOfFleet('weir-2'), kept);
    assert.equal((await stores[0]?.table.read())?.table.entries.size, 0);
  });

  test('do not permit a user of one fleet to read, write or list anything of the other', async (t) => {
    const keysOfOther = await admin.keys('weir:{weir-2}:*');
    assert.notEqual(keysOfOther.length, 0);
    for (const user of USERS) {
      const client = new Redis(server.url, { username: `${user}.weir`, password: 'PASSWORD' });
      t.after(() => client.disconnect());
      assert.equal(await client.exists('weir:{weir}:meta'), 1);
      for (const key of keysOfOther) {
        for (const [command, ...args] of [
          ['EXISTS', key],
          ['DUMP', key],
          ['DEL', key],
          ['EXPIRE', key, '1'],
          ['EVAL', "return redis.call('TYPE', KEYS[1])", '1', key],
          ['EVAL_RO', "return redis.call('TYPE', ARGV[1])", '0', key],
        ] as const) {
          await assert.rejects(client.call(command, ...args), /NOPERM|can't access/, `${user}: ${command} ${key}`);
        }
      }
      for (const command of ['FLUSHALL', 'KEYS *', 'SCAN 0', 'RANDOMKEY', 'CONFIG GET *', 'ACL LIST']) {
        const [name = '', ...args] = command.split(' ');
        await assert.rejects(client.call(name, ...args), /NOPERM/, `${user}: ${command}`);
      }
    }
    const foreignClient = await open('weir-2', 'weir-controller.weir');
    t.after(() => foreignClient.close());
    await assert.rejects(foreignClient.table.meta(), { code: 'REFUSED', message: /extend the ACL of the user/ });
  });

  /** Returns all keys of a fleet except the heartbeats, which expire, with their content. */
  async function contentOfFleet(fleet: string): Promise<Readonly<Record<string, string | undefined>>> {
    const keys = (await admin.keys(`weir:{${fleet}}:*`)).filter((key) => !key.includes(':proxy:')).sort();
    const dumps = await Promise.all(keys.map(async (key) => (await admin.dumpBuffer(key))?.toString('hex')));
    return Object.fromEntries(keys.map((key, index) => [key, dumps[index]]));
  }
});
