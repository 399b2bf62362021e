import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Secret, silentLogger } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram, startRedisSentinel } from '@weir/tools';
import { openRedisStore } from '../../../src/redis/open-redis-store.ts';
import { waitUntilReady } from '../fixtures/redis-fixture.ts';

const log = silentLogger();

describe('sentinels', requireProgram('redis'), () => {
  let group: Awaited<ReturnType<typeof startRedisSentinel>>;
  const sentinelPassword = new Secret('pw');
  before(async () => {
    group = await startRedisSentinel({ sentinelPassword: 'pw', downAfterMs: 30_000 });
  });
  after(() => group?.close());

  test('refuses an unknown primary and a missing password with an explanation', async () => {
    const url = group.url.replace(/#.*/, '#other');
    await assert.rejects(openRedisStore({ url, sentinelPassword, fleet: 'f', log }), {
      code: 'REFUSED',
      message: /^the sentinels .* do not know the primary "other"; check the name after # in the Redis URL$/,
    });
    await assert.rejects(openRedisStore({ url: group.url, fleet: 'f', log }), {
      code: 'REFUSED',
      message: /^Sentinel at .* asks for a password; .*WEIR_REDIS_SENTINEL_PASSWORD/,
    });
    const wrong = new Secret('hunter2');
    await assert.rejects(openRedisStore({ url: group.url, sentinelPassword: wrong, fleet: 'f', log }), {
      code: 'REFUSED',
      message: /^Sentinel at .* refuses the user name or password/,
    });
  });

  test('keeps connections without a majority, but opens new stores as unreachable', async (t) => {
    const connected = await openRedisStore({ url: group.url, sentinelPassword, fleet: 'f', log });
    t.after(() => connected.close());
    const states: string[] = [];
    t.after(connected.onConnectionChange((state) => states.push(state)));
    const [first, second] = group.sentinels;
    await first?.stop();
    second?.pause();
    t.after(() => second?.resume());
    const started = performance.now();
    const coming = await openRedisStore({ url: group.url, sentinelPassword, fleet: 'f', log, timeoutMs: 500 });
    t.after(() => coming.close());
    assert.ok(performance.now() - started < 2_000);
    assert.equal(coming.connectionError?.code, 'AWAY');
    assert.match(
      coming.connectionError?.message ?? '',
      /^no majority of the sentinels in the Redis URL names one server as the primary "weir": .* no process listens.*; .* has not responded in time; .* names /,
    );
    await assert.rejects(coming.table.meta(), { code: 'AWAY' });
    await connected.table.meta();
    assert.deepEqual(states, []);
    second?.resume();
    await waitUntilReady(coming);
    await first?.start();
  });

  test('leaves no socket if closed while sentinels are queried', async () => {
    for (const sentinel of group.sentinels) sentinel.pause();
    const opening = openRedisStore({ url: group.url, sentinelPassword, fleet: 'f', log, timeoutMs: 1_000 });
    const store = await opening;
    assert.equal(store.connection, 'away');
    await store.close();
    for (const sentinel of group.sentinels) sentinel.resume();
    await eventually(() => assert.equal(openSockets(), 0));
  });
});

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => /^(?:TCPSocketWrap|TCPConnectWrap)$/.test(name)).length;
}
