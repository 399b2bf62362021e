import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Secret, silentLogger } from '@weir/runtime';
import { eventually, freePort, httpBackend } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { Redis } from 'ioredis';
import type { Store } from '../../../src/contract.ts';
import { StoreError } from '../../../src/errors.ts';
import { openRedisStore } from '../../../src/redis/open-redis-store.ts';
import { heartbeat } from '../../contract/sample-data.ts';
import { waitUntilReady } from '../fixtures/redis-fixture.ts';

const log = silentLogger();

describe('opening a Redis store', requireProgram('redis'), () => {
  test('refuses an invalid URL with the format and without the password', async () => {
    for (const url of [
      'localhost:6379',
      'http://localhost',
      'redis://',
      'redis://localhost/zero',
      'redis://localhost/0?family=6',
      'redis://:sec#ret@localhost',
    ]) {
      await assert.rejects(openRedisStore({ url, fleet: 'f', log }), (error) => {
        assert.ok(error instanceof StoreError);
        assert.equal(error.code, 'REFUSED');
        assert.match(error.message, /^the Redis URL ".*" .+; use redis:\/\/\[USER:PASSWORD@\]HOST/);
        assert.doesNotMatch(error.message, /ret|\n/);
        return true;
      });
    }
  });

  test('refuses an invalid fleet name', async () => {
    for (const fleet of ['', 'a b', 'a}b', 'a:b', 'Weir', 'a_b', '-a', 'a.', 'a..b', 'a-.b', 'a'.repeat(64)]) {
      await assert.rejects(openRedisStore({ url: 'redis://127.0.0.1:1', fleet, log }), { code: 'REFUSED' });
    }
  });

  test('opens as unreachable if no process listens, and becomes ready by itself', async (t) => {
    const port = await freePort();
    const store = await openRedisStore({ url: `redis://127.0.0.1:${port}`, fleet: 'f', log });
    t.after(() => store.close());
    assert.equal(store.connection, 'away');
    assert.equal(
      store.connectionError?.message,
      `Redis at 127.0.0.1:${port} refuses the connection: no process listens on the port; start Redis, or check the Redis URL`,
    );
    await assert.rejects(store.table.meta(), { code: 'AWAY' });
    await using _redis = await startRedis({ port });
    await waitUntilReady(store);
    assert.equal(await store.table.meta(), undefined);
  });

  test('refuses a database that Redis does not have instead of using database 0', async () => {
    await using redis = await startRedis();
    const { host } = new URL(redis.url);
    await assert.rejects(openRedisStore({ url: `redis://${host}/99`, fleet: 'f', log }), {
      code: 'REFUSED',
      message: `Redis at ${host} does not have the database; check the number at the end of the Redis URL`,
    });
  });

  test('explains a host name that does not resolve', async (t) => {
    const store = await openRedisStore({ url: 'redis://redis.invalid', fleet: 'f', log });
    t.after(() => store.close());
    assert.match(store.connectionError?.message ?? '', /redis.invalid:6379 cannot be (found|reached)/);
  });

  test('refuses a missing and a wrong password without printing it', async () => {
    await using redis = await startRedis({ password: 'right secret' });
    const { host, port } = redis;
    await refused(openRedisStore({ url: `redis://${host}:${port}`, fleet: 'f', log }), /asks for a password/);
    const wrong = new Secret(`redis://:${encodeURIComponent('wrong secret')}@${host}:${port}`);
    await refused(openRedisStore({ url: wrong, fleet: 'f', log }), /refuses the user name or password/);
    const store = await openRedisStore({ url: new Secret(redis.url), fleet: 'f', log });
    assert.equal(store.connection, 'ready');
    await store.close();
  });

  test('refuses a user without permission at the start or at the call, with the command', async (t) => {
    await using redis = await startRedis();
    await administer(redis.url, async (admin) => {
      await admin.call('ACL', 'SETUSER', 'blind', 'on', '>pw', '+ping', '+select');
      await admin.call('ACL', 'SETUSER', 'reader', 'on', '>pw', '+info', '+@read', '+multi', '+exec', '~weir:*');
    });
    const { host, port } = redis;
    await refused(
      openRedisStore({ url: `redis://blind:pw@${host}:${port}`, fleet: 'f', log }),
      /does not permit.*info/,
    );
    const store = await openRedisStore({ url: `redis://reader:pw@${host}:${port}`, fleet: 'f', log });
    t.after(() => store.close());
    assert.equal(await store.table.read(), undefined);
    await assert.rejects(store.table.claimLeader(), (error) => {
      assert.ok(error instanceof StoreError && error.code === 'REFUSED');
      return /does not permit.*eval/.test(error.message);
    });
    await assert.rejects(store.heartbeats.remove('n', 1), /does not permit.*unlink/);
    assert.equal(store.connection, 'ready');
  });

  test('refuses a Redis with an eviction policy, at the start and after a change', async (t) => {
    await using redis = await startRedis();
    const setPolicy = (policy: string): Promise<void> =>
      administer(redis.url, async (admin) => void (await admin.config('SET', 'maxmemory-policy', policy)));
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    await setPolicy('allkeys-lru');
    await refused(openRedisStore({ url: redis.url, fleet: 'f', log }), /maxmemory-policy allkeys-lru.*noeviction/);
    await dropConnections(redis.url);
    await eventually(() => assert.equal(store.connectionError?.code, 'REFUSED'));
    await assert.rejects(store.table.meta(), { code: 'REFUSED' });
    await setPolicy('noeviction');
    await waitUntilReady(store);
  });

  test('refuses a Redis that is too old', async (t) => {
    const url = await pretend(t, { INFO: bulk('redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n') });
    await refused(openRedisStore({ url, fleet: 'f', log }), /is version 6\.2\.14; Weir needs 7\.0 or newer/);
  });

  test('is unreachable for a replica and for a loading Redis', async (t) => {
    for (const [info, message] of [
      ['redis_version:7.2.0\r\nrole:slave\r\n', /is a replica/],
      ['redis_version:7.2.0\r\nloading:1\r\n', /still loading/],
    ] as const) {
      const store = await openRedisStore({ url: await pretend(t, { INFO: bulk(info) }), fleet: 'f', log });
      t.after(() => store.close());
      assert.equal(store.connectionError?.code, 'AWAY');
      assert.match(store.connectionError?.message ?? '', message);
    }
  });

  test('is unreachable while Redis refuses writes without a replica', async (t) => {
    await using redis = await startRedis({ settings: ['min-replicas-to-write 1'] });
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    assert.equal(store.connectionError?.code, 'AWAY');
    assert.match(store.connectionError?.message ?? '', /has no connected replica.*\(min-replicas-to-write\)$/);
    await using _replica = await startRedis({ settings: [`replicaof ${redis.host} ${redis.port}`] });
    await waitUntilReady(store);
    await store.heartbeats.beginIncarnation('n', 1);
  });

  test('is unreachable from the next write on when a primary loses its last replica', async (t) => {
    await using redis = await startRedis({ settings: ['min-replicas-to-write 1', 'repl-diskless-sync-delay 0'] });
    const replica = await startRedis({ settings: [`replicaof ${redis.host} ${redis.port}`] });
    t.after(() => replica.close());
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    await waitUntilReady(store);
    await replica.close();
    await eventually(async () => assert.rejects(store.heartbeats.record(heartbeat('n', 1)), { code: 'AWAY' }));
    await eventually(() => assert.match(store.connectionError?.message ?? '', /has no connected replica/));
  });

  test('refuses a server that is not a Redis', async () => {
    await using server = await httpBackend();
    await refused(
      openRedisStore({ url: `redis://127.0.0.1:${server.port}`, fleet: 'f', log }),
      /does not speak the Redis protocol/,
    );
  });

  test('is unreachable within the timeout if a server never responds', async (t) => {
    const url = await pretend(t, {});
    const store = await openRedisStore({ url, fleet: 'f', log, timeoutMs: 200 });
    t.after(() => store.close());
    assert.match(store.connectionError?.message ?? '', /has not responded/);
  });
});

describe('a Redis that hangs', requireProgram('redis'), () => {
  test('fails the first call after the timeout, further calls at once, and becomes ready again', async (t) => {
    await using redis = await startRedis();
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log, timeoutMs: 300 });
    t.after(() => store.close());
    const { signal } = new AbortController();
    const states = store.suspensions.watch(signal)[Symbol.asyncIterator]();
    await states.next();
    redis.pause();
    const watching = assert.rejects(states.next(), { code: 'AWAY' });
    const started = performance.now();
    await Promise.all(
      Array.from({ length: 20 }, () => assert.rejects(store.heartbeats.record(heartbeat('n', 1)), { code: 'AWAY' })),
    );
    assert.ok(performance.now() - started < 1_000);
    assert.equal(store.connection, 'away');
    const again = performance.now();
    await assert.rejects(store.heartbeats.record(heartbeat('n', 1)), { code: 'AWAY' });
    assert.ok(performance.now() - again < 50);
    await watching;
    redis.resume();
    await waitUntilReady(store);
    await store.heartbeats.record(heartbeat('n', 1));
    assert.equal((await store.heartbeats.list()).length, 1);
  });

  test('loads the scripts again if Redis has lost them', async (t) => {
    await using redis = await startRedis();
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    const first = await store.table.claimLeader();
    await administer(redis.url, async (admin) => void (await admin.script('FLUSH')));
    assert.equal(await store.table.claimLeader(), first + 1);
  });

  test('rethrows a programming error unchanged and keeps the connection', async (t) => {
    await using redis = await startRedis();
    const store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    const unsendable = Object.create(null) as unknown as string;
    await assert.rejects(store.heartbeats.remove(unsendable, 1), TypeError);
    assert.equal(store.connection, 'ready');
  });

  test('reconnects forever and reports each change', async (t) => {
    await using redis = await startRedis();
    const store: Store = await openRedisStore({ url: redis.url, fleet: 'f', log });
    t.after(() => store.close());
    for (let time = 0; time < 3; time++) {
      await redis.restart({ signal: 'SIGKILL' });
      await waitUntilReady(store);
      assert.equal(await store.usage.isSeeded(), false);
    }
  });
});

async function refused(opening: Promise<Store>, message: RegExp): Promise<void> {
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof StoreError);
    assert.equal(error.code, 'REFUSED');
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /secret|\n/);
    return true;
  });
}

async function administer(url: string, work: (admin: Redis) => Promise<void>): Promise<void> {
  const admin = new Redis(url);
  try {
    await work(admin);
  } finally {
    admin.disconnect();
  }
}

function dropConnections(url: string): Promise<void> {
  return administer(url, async (admin) => void (await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes')));
}

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;

/** Starts a server that replies to the commands in `answers` and never replies to other commands. Returns its URL. */
async function pretend(t: TestContext, answers: Readonly<Record<string, string>>): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      for (const [command, answer] of Object.entries(answers)) {
        if (data.toString().toUpperCase().includes(command)) socket.write(answer);
      }
    });
  });
  server.listen({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
