// Tests the lease client with the proxies and clients of `simulated-fleet.ts`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LeaseExchange, StoreError } from '@weir/store';
import {
  LIMIT,
  MAX_IN_SECOND,
  NODES,
  SimulatedFleet,
  type SimulatedProxy,
  threeProxies,
} from '../fixtures/simulated-fleet.ts';

/** Returns the sums of all runs of `count` neighbouring numbers. */
function sumsOf(numbers: readonly number[], count: number): number[] {
  return numbers.slice(count - 1).map((_, end) => numbers.slice(end, end + count).reduce((sum, each) => sum + each, 0));
}

/** Returns a generator of numbers from 0 to 1 that is the same for the same seed. */
function randomWith(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function sumOf(admitted: Readonly<Record<string, number>>): number {
  return Object.values(admitted).reduce((sum, each) => sum + each, 0);
}

test('a proxy that is alone has the whole limit and a tenth more in a second after its first exchange', async () => {
  await using fleet = new SimulatedFleet();
  const a = await fleet.add('a');
  assert.equal(a.share, MAX_IN_SECOND);
  assert.equal(a.client.mayOpenListeners, true);
});

for (const [name, load] of [
  ['three proxies', { a: 400, b: 400, c: 400 }],
  ['two proxies', { a: 150, b: 900 }],
  ['one proxy', { c: 600 }],
] as const) {
  test(`clients of ${name} get the whole limit and not more`, async () => {
    await using fleet = await threeProxies();
    await fleet.run(3_000, load);
    const admitted = sumOf(await fleet.run(10_000, load));
    assert.ok(admitted >= 0.95 * 10 * LIMIT && admitted <= 1.05 * 10 * LIMIT, `${admitted}`);
    assert.ok(fleet.highestSum <= MAX_IN_SECOND, `${fleet.highestSum}`);
  });
}

for (const [name, loadAt] of [
  ['skewed', () => ({ a: 320, b: 65, c: 65 })],
  ['moving', (second: number) => ({ [NODES[Math.floor(second / 10) % NODES.length] as string]: 450 })],
] as const) {
  test(`with a ${name} load of random arrivals, 10 s differ by at most 5 %, and no second exceeds the limit by 10 %`, async () => {
    await using fleet = await threeProxies();
    const random = randomWith(1);
    const tenths: number[] = [];
    for (let second = 0; second < 40; second += 1) {
      const load: Readonly<Record<string, number>> = loadAt(second);
      for (let tenth = 0; tenth < 10; tenth += 1) {
        const arrivals = Object.entries(load).map(([node, rate]) => [node, rate * (0.7 + 0.6 * random())]);
        tenths.push(sumOf(await fleet.run(100, Object.fromEntries(arrivals))));
      }
    }
    const highestSecond = Math.max(...sumsOf(tenths, 10));
    assert.ok(highestSecond <= MAX_IN_SECOND, `${highestSecond}`);
    // The first seconds are the time in which the shares find the clients.
    const sums = sumsOf(tenths.slice(50), 100).map((sum) => sum / (10 * LIMIT));
    assert.ok(Math.min(...sums) >= 0.95 && Math.max(...sums) <= 1.05, `${Math.min(...sums)} to ${Math.max(...sums)}`);
  });
}

test('the share follows clients that move to another proxy, within 3 s', async () => {
  await using fleet = await threeProxies();
  await fleet.run(10_000, { a: 500 });
  const moving = await fleet.run(3_000, { b: 500 });
  const { b = 0 } = await fleet.run(1_000, { b: 500 });
  assert.ok(b >= 0.95 * LIMIT, `${b}`);
  assert.ok((moving.b ?? 0) <= 3.3 * LIMIT);
  assert.ok(fleet.highestSum <= MAX_IN_SECOND, `${fleet.highestSum}`);
});

test('a proxy that closes gives its share back as its last clients no longer count for the second', async () => {
  await using fleet = await threeProxies();
  const { b: last = 0 } = await fleet.run(5_000, { a: 500, b: 500 });
  assert.ok(last > 0);
  const [a, b] = [fleet.proxies.get('a') as SimulatedProxy, fleet.proxies.get('b') as SimulatedProxy];
  const shareOfA = a.share;
  const closed = b.client.close();
  for (let tenths = 0; tenths < 10; tenths += 1) {
    await fleet.run(100, { a: 500 });
    assert.ok(a.share + b.admittedInSecond <= MAX_IN_SECOND, `${a.share} and ${b.admittedInSecond}`);
    if (tenths === 5) assert.ok(a.share >= shareOfA + 0.2 * LIMIT, `${shareOfA} → ${a.share}`);
  }
  await fleet.run(300, { a: 500 });
  await closed;
  fleet.proxies.delete('b');
  assert.ok(a.share >= 0.95 * LIMIT, `${a.share}`);
});

test('a proxy without clients gives its share back at once', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { a: 500 });
  await fleet.proxies.get('b')?.client.close();
  fleet.proxies.delete('b');
  assert.deepEqual((await fleet.store.leases.members()).map(({ node }) => node).sort(), ['a', 'c']);
});

test('a proxy that drains keeps only what its clients use', async () => {
  await using fleet = await threeProxies();
  const [a, b] = [fleet.proxies.get('a') as SimulatedProxy, fleet.proxies.get('b') as SimulatedProxy];
  for (const proxy of fleet.proxies.values()) proxy.setLimits({ connections: LIMIT });
  b.open = 40;
  await fleet.run(3_000, {});
  b.isDraining = true;
  await fleet.run(2_000, {});
  assert.equal(b.share, 40);
  a.open = LIMIT - 50;
  await fleet.run(2_000, {});
  assert.ok(a.share >= LIMIT - 50, `${a.share}`);
});

test('proxies keep their last shares while the store is away, and move them again after it is back', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { a: 500, b: 100 });
  const before = [...fleet.proxies.values()].map(({ share }) => share);
  fleet.store.faults.goAway();
  const admitted = await fleet.run(20_000, { b: 500, c: 500 });
  assert.deepEqual(
    [...fleet.proxies.values()].map(({ share }) => share),
    before,
  );
  assert.ok(before.every((share) => share >= 1));
  for (const { client } of fleet.proxies.values()) assert.equal(client.pendingExchanges, 1);
  assert.ok(sumOf(admitted) <= 20.6 * LIMIT);
  fleet.store.faults.comeBack();
  for (const { client } of fleet.proxies.values()) client.onStoreReady();
  await fleet.run(6_000, { b: 500 });
  const { b = 0 } = await fleet.run(1_000, { b: 500 });
  assert.ok(b >= 0.95 * LIMIT, `${b}`);
  assert.ok(fleet.highestSum <= MAX_IN_SECOND, `${fleet.highestSum}`);
});

test('proxies admit no more than the limit while the store is away, although each of them knew of unused units', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { a: 80, b: 80, c: 80 });
  fleet.store.faults.goAway();
  const admitted = sumOf(await fleet.run(20_000, { a: 500, b: 500, c: 500 }));
  assert.ok(admitted >= 0.95 * 20 * LIMIT && admitted <= 1.05 * 20 * LIMIT, `${admitted}`);
});

test('a store that loses its data never grants more than the limit', async () => {
  await using fleet = await threeProxies();
  await fleet.run(5_000, { a: 500, b: 100 });
  fleet.store.faults.wipe();
  await fleet.run(10_000, { b: 500, c: 500 });
  assert.ok(fleet.highestSum <= MAX_IN_SECOND, `${fleet.highestSum}`);
  assert.ok((fleet.proxies.get('b')?.share ?? 0) > 0.45 * LIMIT);
});

test('a proxy that starts uses no share before the others have lowered theirs, and is settled within a second', async () => {
  const savedShares = new Map([['tenant.shop:newConnectionsPerSecond', LIMIT]]);
  for (const load of [{}, { a: 500, b: 500 }, { a: 150 }]) {
    await using fleet = await threeProxies();
    await fleet.run(3_000, load);
    const d = await fleet.add('d', { savedShares });
    let waitedMs = 0;
    for (; d.share === 0; waitedMs += 10) {
      assert.equal(d.client.mayOpenListeners, false);
      await fleet.run(10, load);
    }
    assert.ok(waitedMs < 800, `${waitedMs} ms`);
    assert.equal(d.client.mayOpenListeners, true);
    await fleet.run(2_000, { ...load, d: 500 });
    assert.ok(d.share >= 0.2 * LIMIT, `${d.share}`);
    assert.ok(fleet.highestSum <= MAX_IN_SECOND, `${fleet.highestSum}`);
  }
});

test('a proxy is settled a second after its start if the others keep the whole limit, and then uses a tenth', async () => {
  await using fleet = await threeProxies();
  // These proxies cannot lower their shares.
  for (const proxy of fleet.proxies.values()) proxy.isDead = true;
  const d = await fleet.add('d', {});
  await fleet.run(990, {});
  assert.equal(d.client.mayOpenListeners, false);
  await fleet.run(60, {});
  assert.deepEqual([d.client.mayOpenListeners, d.share], [true, LIMIT / 10]);
});

test('a proxy that serves before a share is granted uses a tenth, but nothing of a limit that the clients of others use up', async () => {
  for (const [open, share] of [
    [0, 10],
    [100, 0],
  ] as const) {
    await using fleet = await threeProxies();
    for (const proxy of fleet.proxies.values()) proxy.setLimits({ connections: 100 });
    const a = fleet.proxies.get('a') as SimulatedProxy;
    a.open = open;
    await fleet.run(3_000, {});
    // These proxies cannot lower their shares.
    for (const proxy of fleet.proxies.values()) proxy.isDead = true;
    const d = await fleet.add('d', { limits: { connections: 100 } });
    await fleet.run(200, {});
    d.client.beforeListenersOpen();
    assert.equal(d.share, share);
  }
});

test('a proxy keeps the share that it has taken while the store did not answer, also if the late answer grants none', async () => {
  await using fleet = new SimulatedFleet();
  const { leases } = fleet.store;
  fleet.store.faults.wipe();
  const answer = Promise.withResolvers<void>();
  const slow = new Proxy(leases, {
    get(target, name) {
      if (name === 'exchange')
        return async (exchange: LeaseExchange) => {
          const grants = target.exchange(exchange);
          if (exchange.sequence === 1) await answer.promise;
          return grants;
        };
      const value = target[name as keyof typeof target];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const a = await fleet.add('a', { store: { leases: slow, connection: 'ready' } });
  await fleet.run(1_100, {});
  assert.equal(a.share, LIMIT / 10);
  answer.resolve();
  await fleet.run(100, {});
  assert.equal(a.share, LIMIT / 10);
});

test('a tenant that leaves a proxy keeps there what its connections use, until the last one has ended', async () => {
  await using fleet = await threeProxies();
  const [a, b] = [fleet.proxies.get('a') as SimulatedProxy, fleet.proxies.get('b') as SimulatedProxy];
  for (const proxy of fleet.proxies.values()) proxy.setLimits({ connections: LIMIT });
  b.open = 40;
  await fleet.run(3_000, {});
  b.isLeaving = true;
  b.client.onLimitsChanged();
  a.open = LIMIT - 40;
  await fleet.run(3_000, {});
  assert.deepEqual([b.share, a.share], [40, LIMIT - 40]);
  b.open = 0;
  await fleet.run(3_000, {});
  assert.ok(a.share > LIMIT - 40, `${a.share}`);
});

test('a proxy that drains saves the shares from before, which a start without the store needs', async () => {
  await using fleet = await threeProxies();
  const b = fleet.proxies.get('b') as SimulatedProxy;
  await fleet.run(3_000, { b: 500 });
  const before = [...(b.client.savedShares ?? [])];
  assert.ok((before[0]?.[1] ?? 0) > 0.8 * LIMIT, `${before}`);
  b.isDraining = true;
  await fleet.run(3_000, {});
  assert.ok(b.share <= 1, `${b.share}`);
  await fleet.close(b.client);
  fleet.proxies.delete('b');
  assert.deepEqual([...(b.client.savedShares ?? [])], before);
});

test('proxies that start with a store that has lost its data use a tenth until the store raises shares', async () => {
  await using fleet = new SimulatedFleet();
  fleet.store.faults.wipe();
  const a = await fleet.add('a');
  await fleet.run(1_100, {});
  assert.deepEqual([a.client.mayOpenListeners, a.share], [true, LIMIT / 10]);
  assert.match(a.warnings.join(), /without granted shares/);
  await fleet.run(3_000, {});
  assert.equal(a.share, MAX_IN_SECOND);
});

test('a proxy that starts while the store is away uses its saved share, or else a tenth of the limit', async () => {
  await using fleet = new SimulatedFleet();
  fleet.store.faults.goAway();
  const saved = await fleet.add('a', { savedShares: new Map([['tenant.shop:newConnectionsPerSecond', 77]]) });
  const unknown = await fleet.add('b');
  const none = await fleet.add('c', { savedShares: new Map([['tenant.shop:newConnectionsPerSecond', 0]]) });
  assert.equal(saved.share, 77);
  assert.equal(unknown.share, LIMIT / 10);
  assert.equal(none.share, LIMIT / 10);
  assert.equal(unknown.client.mayOpenListeners, true);
});

test('a proxy whose calls fail does not lower its share', async () => {
  await using fleet = new SimulatedFleet();
  const state = { fails: false };
  const leases = new Proxy(fleet.store.leases, {
    get(target, name) {
      if (name === 'exchange' && state.fails) return () => Promise.reject(new StoreError('REFUSED', 'out of memory'));
      const value = target[name as keyof typeof target];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const a = await fleet.add('a', { store: { leases, connection: 'ready' } });
  await fleet.add('b');
  await fleet.run(5_000, { a: 500 });
  const { share } = a;
  state.fails = true;
  await fleet.run(10_000, {});
  // The first call that fails may have reached the store.
  const lowered = a.share;
  assert.ok(lowered > 0.4 * LIMIT && lowered <= share, `${share} ${lowered}`);
  assert.equal(a.warnings.length, 1);
  state.fails = false;
  await fleet.run(3_000, { b: 500 });
  assert.ok(a.share < 0.1 * LIMIT);
});

test('a proxy without the right to leases uses the whole limit and warns once', async () => {
  await using fleet = new SimulatedFleet();
  const state = { isForbidden: true };
  const leases = new Proxy(fleet.store.leases, {
    get(target, name) {
      if (name === 'exchange' && state.isForbidden) return () => Promise.reject(new StoreError('FORBIDDEN', 'NOPERM'));
      const value = target[name as keyof typeof target];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const a = await fleet.add('a', { store: { leases, connection: 'ready' } });
  await fleet.run(5_000, {});
  assert.equal(a.share, Number.POSITIVE_INFINITY);
  assert.deepEqual([...a.client.tenantShares()][0]?.share, LIMIT);
  assert.match(a.client.warning ?? '', /lacks the right/);
  assert.equal(a.warnings.length, 1);
  state.isForbidden = false;
  await fleet.add('b');
  await fleet.run(5_000, { b: 500 });
  assert.equal(a.client.warning, undefined);
  assert.ok(a.share < 0.1 * LIMIT);
});

test('a limit that is removed gives its lease back, and a new limit starts with a tenth', async () => {
  await using fleet = await threeProxies();
  const a = fleet.proxies.get('a') as SimulatedProxy;
  await fleet.run(3_000, { a: 500 });
  a.setLimits({});
  await fleet.run(3_000, {});
  const [b, c] = [fleet.proxies.get('b') as SimulatedProxy, fleet.proxies.get('c') as SimulatedProxy];
  assert.equal(b.share + c.share, MAX_IN_SECOND);
  a.setLimits({ newConnectionsPerSecond: LIMIT });
  assert.equal(a.share, LIMIT / 10);
});
