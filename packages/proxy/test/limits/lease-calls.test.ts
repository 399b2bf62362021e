// Tests when the lease client calls the store, with the proxies and clients of `simulated-fleet.ts`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wait } from '@weir/runtime';
import type { LeaseExchange } from '@weir/store';
import { LIMIT, SimulatedFleet, type SimulatedProxy, threeProxies } from '../fixtures/simulated-fleet.ts';

test('a proxy without clients calls the store twice a second, and looks for earlier incarnations once', async () => {
  await using fleet = new SimulatedFleet();
  const calls = { exchange: 0, members: 0 };
  fleet.observeCalls(calls);
  await fleet.add('a');
  await fleet.run(1_000, {});
  calls.exchange = 0;
  await fleet.run(10_000, {});
  assert.equal(calls.members, 1);
  assert.ok(calls.exchange >= 19 && calls.exchange <= 22, `${calls.exchange}`);
});

test('a limit that is set while the store answers slowly is exchanged as soon as the store has answered', async () => {
  await using fleet = new SimulatedFleet();
  const calledAt: number[] = [];
  const leases = new Proxy(fleet.store.leases, {
    get(target, name) {
      const value = target[name as keyof typeof target];
      if (typeof value !== 'function') return value;
      if (name !== 'exchange') return value.bind(target);
      return async (exchange: LeaseExchange) => {
        calledAt.push(fleet.clock.monotonic());
        await wait(fleet.clock, 400);
        return target.exchange(exchange);
      };
    },
  });
  const a = await fleet.add('a', { store: { leases, connection: 'ready' } });
  await fleet.run(3_000, {});
  const calls = calledAt.length;
  while (calledAt.length === calls) await fleet.run(10, {});
  a.setLimits({ newConnectionsPerSecond: LIMIT, connections: 10 });
  await fleet.run(1_000, {});
  const [first = 0, second = 0] = calledAt.slice(calls);
  assert.ok(second > first && second - first <= 500, `${first}, ${second}`);
});

test('changes of the routing table without changes of limits call the store no more often', async () => {
  await using fleet = await threeProxies();
  const a = fleet.proxies.get('a') as SimulatedProxy;
  const calls = { exchange: 0, members: 0 };
  fleet.observeCalls(calls);
  for (let change = 0; change < 100; change += 1) {
    a.client.onLimitsChanged();
    await fleet.run(10, {});
  }
  assert.ok(calls.exchange <= 9, `${calls.exchange}`);
});

test('limits that were set at different times are exchanged together', async () => {
  await using fleet = new SimulatedFleet();
  const calls = { exchange: 0, members: 0 };
  const a = await fleet.add('a');
  for (let added = 1; added <= 4; added += 1) {
    await fleet.run(130, {});
    const names = ['connections', 'requestsPerSecond', 'inBitsPerSecond', 'outBitsPerSecond'].slice(0, added);
    a.setLimits(Object.fromEntries(names.map((name) => [name, LIMIT])));
  }
  await fleet.run(2_000, {});
  fleet.observeCalls(calls);
  await fleet.run(10_000, {});
  assert.ok(calls.exchange >= 19 && calls.exchange <= 22, `${calls.exchange}`);
});
