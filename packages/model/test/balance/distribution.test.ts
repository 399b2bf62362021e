// Checks how the distributions of the algorithms differ.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Algorithm, createBalancer, type EndpointStats } from '@weir/model';
import { balancerOptions, clientOf, endpointStatsList, poolOf, routeOf } from '../fixtures/balance.ts';

const balancerOf = (algorithm: Algorithm, seed = 3) => createBalancer(routeOf({ algorithm }), balancerOptions(seed));

/** Returns the number of open connections of each of ten endpoints after 10,000 connections. */
function countsOf(algorithm: Algorithm): number[] {
  const balancer = balancerOf(algorithm);
  const pool = poolOf(endpointStatsList(10));
  for (let i = 0; i < 10_000; i += 1) {
    const chosen = balancer.choose(pool, clientOf(i), []);
    if (chosen) chosen.activeConnections += 1;
  }
  return pool.all.map(({ activeConnections }) => activeConnections);
}

const rangeOf = (counts: readonly number[]): number => Math.max(...counts) - Math.min(...counts);

test('round-robin distributes exactly, least-connections nearly, random roughly', () => {
  assert.equal(rangeOf(countsOf('round-robin')), 0);
  assert.ok(rangeOf(countsOf('least-connections')) <= 8);
  assert.ok(rangeOf(countsOf('random')) > 30);
});

test('round-robin starts at a random endpoint', () => {
  const pool = poolOf(endpointStatsList(5));
  const begun = Array.from({ length: 40 }, (_, seed) => balancerOf('round-robin', seed).choose(pool, clientOf(0), []));
  assert.equal(new Set(begun).size, 5);
});

test('least-connections prefers an idle endpoint to a busy one when it draws both', () => {
  const balancer = balancerOf('least-connections');
  const pool = poolOf(endpointStatsList(2));
  const [busy, idle] = pool.all as [EndpointStats, EndpointStats];
  busy.activeConnections = 5;
  for (let i = 0; i < 100; i += 1) assert.equal(balancer.choose(pool, clientOf(i), []), idle);
});

test('first chooses the lowest address, or the next one if that is unhealthy or was tried', () => {
  const balancer = balancerOf('first');
  const allStats = endpointStatsList(3);
  for (let i = 0; i < 20; i += 1) assert.equal(balancer.choose(poolOf(allStats), clientOf(i), []), allStats[0]);
  assert.equal(balancer.choose(poolOf(allStats), clientOf(1), allStats.slice(0, 1)), allStats[1]);
  for (const stats of allStats.slice(0, 1)) stats.isHealthy = false;
  assert.equal(balancer.choose(poolOf(allStats), clientOf(1), []), allStats[1]);
});

test('every algorithm gives a UDP flow the same endpoint in all workers, and spreads the flows of one client', () => {
  for (const algorithm of ['least-connections', 'round-robin', 'random', 'maglev'] as const) {
    const route = routeOf({ algorithm }, { protocol: 'UDP' });
    const [here, there] = [createBalancer(route, balancerOptions(1)), createBalancer(route, balancerOptions(2))];
    const pool = poolOf(endpointStatsList(8));
    const met = new Set<EndpointStats | undefined>();
    for (let port = 1_000; port < 1_200; port += 1) {
      const chosen = here.choose(pool, clientOf(1, port), []);
      assert.equal(there.choose(pool, clientOf(1, port), []), chosen);
      met.add(chosen);
    }
    assert.equal(met.size, 8, algorithm);
  }
});
