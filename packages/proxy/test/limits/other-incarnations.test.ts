// Tests which incarnations of its node a proxy releases, with the proxies and clients of `simulated-fleet.ts`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreError } from '@weir/store';
import {
  LIMIT,
  MAX_IN_SECOND,
  SimulatedFleet,
  type SimulatedProxy,
  threeProxies,
} from '../fixtures/simulated-fleet.ts';

test('a proxy that ended without a goodbye loses its share when the node’s next proxy starts', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { a: 500, b: 500 });
  const killed = fleet.proxies.get('b') as SimulatedProxy;
  killed.isDead = true;
  await fleet.run(5_000, { a: 500 });
  const a = fleet.proxies.get('a') as SimulatedProxy;
  assert.equal(a.share + killed.share + (fleet.proxies.get('c')?.share ?? 0), MAX_IN_SECOND);
  await fleet.add('b', { life: 2 });
  await fleet.run(500, { a: 500 });
  assert.ok(a.share >= 0.95 * LIMIT, `${a.share}`);
  assert.deepEqual((await fleet.store.leases.members()).map(({ node, life }) => `${node} ${life}`).sort(), [
    'a 1',
    'b 2',
    'c 1',
  ]);
  await fleet.close(killed.client);
});

test('a proxy that serves the node again after its successor was killed releases the successor', async () => {
  await using fleet = await threeProxies();
  const b = fleet.proxies.get('b') as SimulatedProxy;
  const successor = await fleet.add('b', { life: 2 });
  b.isDraining = true;
  await fleet.run(3_000, {});
  successor.isDead = true;
  b.isDraining = false;
  b.client.releaseOthers();
  fleet.proxies.set('b', b);
  await fleet.run(3_000, { b: 500 });
  assert.ok(b.share > 0.9 * LIMIT, `${b.share}`);
  await fleet.close(successor.client);
});

test('a proxy that gets another number releases the old one, also if the first call fails', async () => {
  await using fleet = new SimulatedFleet();
  const state = { fails: false };
  const leases = new Proxy(fleet.store.leases, {
    get(target, name) {
      if (name === 'exchange' && state.fails) return () => Promise.reject(new StoreError('AWAY', 'away'));
      const value = target[name as keyof typeof target];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const a = await fleet.add('a', { store: { leases, connection: 'ready' } });
  await fleet.run(1_000, {});
  Object.assign(state, { fails: true });
  a.life = 2;
  await fleet.run(200, {});
  state.fails = false;
  await fleet.run(1_000, {});
  assert.deepEqual(
    (await fleet.store.leases.members()).map(({ life }) => life),
    [2],
  );
  assert.equal(a.share, MAX_IN_SECOND);
});

test('an earlier incarnation that was released while it could not reach the store is released again after its end', async () => {
  await using fleet = await threeProxies();
  const earlier = fleet.proxies.get('b') as SimulatedProxy;
  earlier.isDraining = true;
  earlier.isDead = true;
  await fleet.run(1_500, {});
  await fleet.add('b', { life: 2 });
  const lives = async (): Promise<number[]> =>
    (await fleet.store.leases.members()).filter(({ node }) => node === 'b').map(({ life }) => life);
  await fleet.run(500, {});
  assert.deepEqual(await lives(), [2]);
  earlier.isDead = false;
  await fleet.run(500, {});
  assert.deepEqual((await lives()).toSorted(), [1, 2]);
  earlier.isDead = true;
  await fleet.run(6_000, {});
  assert.deepEqual(await lives(), [2]);
  await fleet.close(earlier.client);
});

test('a proxy that serves the node alone after a takeover releases the earlier incarnation that was killed', async () => {
  await using fleet = await threeProxies();
  await fleet.run(3_000, {});
  const killed = fleet.proxies.get('b') as SimulatedProxy;
  killed.isDead = true;
  const successor = await fleet.add('b', { life: 2, releasesOthers: false });
  await fleet.run(3_000, {});
  const names = async (): Promise<string[]> =>
    (await fleet.store.leases.members()).map(({ node, life }) => `${node} ${life}`).sort();
  assert.deepEqual(await names(), ['a 1', 'b 1', 'b 2', 'c 1']);
  successor.client.releaseOthers();
  await fleet.run(600, {});
  assert.deepEqual(await names(), ['a 1', 'b 2', 'c 1']);
  await fleet.close(killed.client);
});

test('a proxy that is back within a second of its predecessor’s last call waits until that second has passed', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { b: 500 });
  const killed = fleet.proxies.get('b') as SimulatedProxy;
  killed.isDead = true;
  const b = await fleet.add('b', { life: 2 });
  await fleet.run(800, { b: 500 });
  assert.ok(b.share < 0.1 * LIMIT, `${b.share}`);
  await fleet.run(500, { b: 500 });
  assert.ok(b.share > 0.9 * LIMIT, `${b.share}`);
  await fleet.close(killed.client);
});
