import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freePort } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { Redis } from 'ioredis';
import { inspectRedis } from '../../../src/redis/connection/inspect-redis.ts';

describe('inspectRedis', requireProgram('redis'), () => {
  test('returns the state and the time of the server', async () => {
    await using redis = await startRedis({ password: 'secret' });
    const before = Date.now();
    const seen = await inspectRedis({ fleet: 'f', url: redis.url });
    assert.match(seen.version ?? '', /^\d+\.\d+\.\d+$/);
    // Allows a difference of 1 ms between the clock of Redis and `Date.now()`.
    assert.ok(seen.now >= before - 1 && seen.now <= Date.now() + 1, `${seen.now} is not now`);
    assert.deepEqual(
      { ...seen, version: '', now: 0, memory: { ...seen.memory, used: 0 } },
      {
        where: `127.0.0.1:${redis.port}`,
        version: '',
        role: 'primary',
        isLoading: false,
        evictionPolicy: 'noeviction',
        memory: { used: 0, max: 0 },
        appendOnly: true,
        snapshots: false,
        isFailingToPersist: false,
        now: 0,
      },
    );
  });

  test('inspects a Redis that Weir would refuse', async () => {
    await using redis = await startRedis({ appendonly: false });
    await using client = disposable(new Redis(redis.url));
    await client.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await client.redis.config('SET', 'save', '900 1');
    const { evictionPolicy, appendOnly, snapshots } = await inspectRedis({ fleet: 'f', url: redis.url });
    assert.deepEqual(
      { evictionPolicy, appendOnly, snapshots },
      { evictionPolicy: 'allkeys-lru', appendOnly: false, snapshots: true },
    );
  });

  test('returns the other fields if the user may not read the configuration', async () => {
    await using redis = await startRedis();
    await using client = disposable(new Redis(redis.url));
    await client.redis.acl('SETUSER', 'looker', 'on', '>x', '+info', '+time', '+ping', '+select');
    const seen = await inspectRedis({ fleet: 'f', url: `redis://looker:x@127.0.0.1:${redis.port}` });
    assert.equal(seen.snapshots, undefined);
    assert.equal(seen.appendOnly, true);
  });

  test('explains a wrong password and an unreachable server', async () => {
    await using redis = await startRedis({ password: 'secret' });
    const wrong = `redis://:wrong@127.0.0.1:${redis.port}`;
    await assert.rejects(inspectRedis({ fleet: 'f', url: wrong }), {
      code: 'REFUSED',
      message: /refuses the user name or password/,
    });
    const nobody = `redis://127.0.0.1:${await freePort()}`;
    await assert.rejects(inspectRedis({ fleet: 'f', url: nobody }), {
      code: 'AWAY',
      message: /no process listens on the port; start Redis/,
    });
    await assert.rejects(inspectRedis({ fleet: 'f', url: '127.0.0.1:6379' }), {
      code: 'REFUSED',
      message: /^the Redis URL/,
    });
  });
});

function disposable(redis: Redis): AsyncDisposable & { readonly redis: Redis } {
  return { redis, [Symbol.asyncDispose]: async () => void (await redis.quit()) };
}
