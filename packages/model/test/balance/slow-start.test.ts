import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Algorithm,
  buildPool,
  createBalancer,
  EMPTY_POOL,
  type EndpointPool,
  type EndpointStats,
  updateEndpointStats,
} from '@weir/model';
import { balancerOptions, clientOf, endpointStatsList, routeOf } from '../fixtures/balance.ts';

const ENDPOINTS = endpointStatsList(5).map(({ endpoint }) => endpoint);
const NEVER = Number.NEGATIVE_INFINITY;

/** Returns the pool after a series of tables. Each table has `count` endpoints and arrives at the time `at` (ms). */
function poolAfter(...tables: (readonly [count: number, at: number])[]): EndpointPool {
  let pool = EMPTY_POOL;
  for (const [count, now] of tables) {
    const allStats = updateEndpointStats(ENDPOINTS.slice(0, count), pool.all, { now, departed: () => undefined });
    pool = buildPool(pool, allStats, { zone: null, maglev: undefined });
  }
  return pool;
}

/** Returns the share of 20,000 connections at the time `now` (ms) that the last endpoint gets. */
function shareOfLast(algorithm: Algorithm, pool: EndpointPool, now: number): number {
  const balancer = createBalancer(routeOf({ algorithm }), balancerOptions(11, { now: () => now }));
  const last = pool.all.at(-1);
  let chosen = 0;
  for (let i = 0; i < 20_000; i += 1) if (balancer.choose(pool, clientOf(i), []) === last) chosen += 1;
  return chosen / 20_000;
}

describe('an endpoint that joins serving endpoints', () => {
  const SHARES = [
    // Among four endpoints of weight 1, an endpoint of weight w should get the share w / (4 + w). The rows are the start, the middle and
    // the end of slow start.
    { now: 1_000, expected: 0.1 / 4.1 },
    { now: 16_000, expected: 0.55 / 4.55 },
    { now: 31_000, expected: 1 / 5 },
  ];
  for (const algorithm of ['random', 'round-robin', 'least-connections'] as const) {
    for (const { now, expected } of SHARES) {
      test(`${algorithm}: has the share of its weight after ${(now - 1_000) / 1_000} s`, () => {
        const share = shareOfLast(algorithm, poolAfter([4, 0], [5, 1_000]), now);
        // The algorithm least-connections draws two different endpoints. Therefore it draws an endpoint of low weight a little more often
        // than in proportion to the weight.
        assert.ok(Math.abs(share - expected) < 0.012, `${share} for ${expected}`);
      });
    }
  }

  test('does not get every connection although it has the fewest', () => {
    const pool = poolAfter([4, 0], [5, 1_000]);
    for (const stats of pool.all.slice(0, 4)) stats.activeConnections = 100;
    const share = shareOfLast('least-connections', pool, 1_000);
    assert.ok(share > 0.02 && share < 0.07, `${share}`);
  });
});

test('endpoints of a first table, or of a table with only new endpoints, skip slow start', () => {
  assert.equal(poolAfter([5, 1_000]).slowStartEndsAt, NEVER);
  assert.equal(poolAfter([0, 0], [5, 1_000]).slowStartEndsAt, NEVER);
  assert.equal(poolAfter([4, 0], [5, 1_000]).slowStartEndsAt, 31_000);
});

test('endpoints that stay keep their connections and continue their slow start', () => {
  const before = poolAfter([4, 0], [5, 1_000]);
  const last = before.all.at(-1) as EndpointStats;
  last.activeConnections = 3;
  const allStats = updateEndpointStats(ENDPOINTS.slice(1), before.all, { now: 9_000, departed: () => undefined });
  assert.equal(allStats.at(-1), last);
  assert.deepEqual([last.activeConnections, last.slowStartAt], [3, 1_000]);
});

test('an endpoint that returns with open connections keeps its stats and begins slow start', () => {
  const before = poolAfter([5, 0]);
  const gone = before.all[0] as EndpointStats;
  gone.activeConnections = 2;
  const after = buildPool(before, before.all.slice(1), { zone: null, maglev: undefined });
  const allStats = updateEndpointStats(ENDPOINTS, after.all, { now: 4_000, departed: () => gone });
  assert.equal(allStats[0], gone);
  assert.deepEqual([gone.activeConnections, gone.slowStartAt], [2, 4_000]);
});

test('endpoints share evenly when all remaining ones are in slow start', () => {
  const pool = poolAfter([1, 0], [5, 1_000]);
  const young = buildPool(pool, pool.all.slice(1), { zone: null, maglev: undefined });
  for (const algorithm of ['random', 'round-robin', 'least-connections'] as const) {
    const share = shareOfLast(algorithm, young, 1_000);
    assert.ok(Math.abs(share - 0.25) < 0.016, `${algorithm}: ${share}`);
  }
});
