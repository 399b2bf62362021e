import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildPool, createBalancer, type EndpointStats, fillMaglevSlots, MAGLEV_SLOTS } from '@weir/model';
import fc from 'fast-check';
import { balancerOptions, clientOf, endpointStatsList, maglevOf, poolOf, routeOf } from '../fixtures/balance.ts';

const keysOf = (count: number, net = 0): string[] =>
  Array.from({ length: count }, (_, i) => `10.${net}.${i >> 8}.${i & 255}|8080`);

/** Returns the key of the endpoint in each slot of the table. */
function ownersFor(keys: readonly string[], size = MAGLEV_SLOTS): string[] {
  const slots = new Uint16Array(size);
  fillMaglevSlots(slots, keys);
  return Array.from(slots, (number) => keys[number] as string);
}

function changedShare(one: readonly string[], other: readonly string[]): number {
  return one.filter((owner, slot) => owner !== other[slot]).length / one.length;
}

const COUNTS = [2, 3, 7, 10, 50, 100, 1_000];
const NETS = [1, 2, 3];

describe('the maglev table', () => {
  for (const count of COUNTS) {
    test(`of ${count} endpoints gives each its share within 2 %`, () => {
      for (const net of NETS) {
        const slots = new Map<string, number>(keysOf(count, net).map((key) => [key, 0]));
        for (const owner of ownersFor([...slots.keys()])) slots.set(owner, (slots.get(owner) ?? 0) + 1);
        const share = MAGLEV_SLOTS / count;
        for (const [key, own] of slots) {
          // Rounding to whole slots can add or remove one slot. With more than 1,310 endpoints, one slot is more than 2 % of a share.
          assert.ok(Math.abs(own - share) <= Math.max(1, share * 0.02), `${key}: ${own} of ${share}`);
        }
      }
    });

    test(`of ${count} endpoints changes by at most 1/n + 2 % when an endpoint leaves, joins, or is replaced`, () => {
      for (const net of NETS) {
        const keys = keysOf(count, net);
        const before = ownersFor(keys);
        for (const gone of new Set([0, count >> 1, count - 1])) {
          const left = keys.filter((_, index) => index !== gone);
          const share = changedShare(before, ownersFor(left));
          assert.ok(share <= 1 / count + 0.02, `without ${gone}: ${share}`);
        }
        const more = changedShare(before, ownersFor([...keys, '10.99.0.1|8080']));
        assert.ok(more <= 1 / (count + 1) + 0.02, `one more: ${more}`);
      }
    });
  }

  test('does not depend on the order of its endpoints', () => {
    const shuffles = fc
      .uniqueArray(fc.ipV4(), { minLength: 1, maxLength: 40 })
      .chain((keys) => fc.tuple(fc.constant(keys), fc.shuffledSubarray(keys, { minLength: keys.length })));
    fc.assert(
      fc.property(shuffles, ([keys, shuffled]) => {
        assert.deepEqual(ownersFor(shuffled, 1_009), ownersFor(keys, 1_009));
      }),
    );
  });

  test('has no free slot, and rejects more endpoints than slots', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 251 }), fc.nat(255), (count, net) => {
        const keys = keysOf(count, net);
        assert.ok(ownersFor(keys, 251).every((owner) => keys.includes(owner)));
      }),
    );
    assert.throws(() => ownersFor(keysOf(252), 251), /252 endpoints: too many/);
  });
});

describe('maglev', () => {
  const balancer = createBalancer(routeOf({ algorithm: 'maglev' }), balancerOptions(1));
  const CLIENTS = Array.from({ length: 4_000 }, (_, i) => clientOf(i));

  test('spreads clients as evenly as the table', () => {
    const pool = poolOf(endpointStatsList(10));
    for (const client of CLIENTS) choose(pool, client).activeConnections += 1;
    // Each endpoint should get 400 clients. The tolerance is five standard deviations.
    for (const { activeConnections } of pool.all)
      assert.ok(Math.abs(activeConnections - 400) < 95, `${activeConnections}`);
  });

  test('moves only the clients of an unhealthy endpoint, evenly, and moves all of them back', () => {
    const pool = poolOf(endpointStatsList(10));
    const before = CLIENTS.map((client) => choose(pool, client));
    const ill = pool.all[4] as EndpointStats;
    ill.isHealthy = false;
    const meanwhile = buildPool(pool, pool.all, { zone: null, maglev: pool.maglev });
    const moved = new Map<EndpointStats, number>();
    for (const [i, client] of CLIENTS.entries()) {
      const chosen = choose(meanwhile, client);
      if (before[i] !== ill) assert.equal(chosen, before[i]);
      else moved.set(chosen, (moved.get(chosen) ?? 0) + 1);
    }
    assert.equal(moved.size, 9);
    assert.ok(Math.max(...moved.values()) < 3 * Math.min(...moved.values()), [...moved.values()].join(' '));
    ill.isHealthy = true;
    const after = buildPool(meanwhile, pool.all, { zone: null, maglev: pool.maglev });
    assert.deepEqual(
      CLIENTS.map((client) => choose(after, client)),
      before,
    );
  });

  test('sends a retry to the same endpoint on every proxy', () => {
    const here = poolOf(endpointStatsList(10));
    const there = poolOf(endpointStatsList(10));
    for (const client of CLIENTS.slice(0, 300)) {
      const [one, other] = [here, there].map((pool) => {
        const tried = [choose(pool, client)];
        tried.push(choose(pool, client, tried));
        return tried.map(({ endpoint }) => endpoint);
      });
      assert.deepEqual(one, other);
      assert.notDeepEqual(one?.[0], one?.[1]);
    }
  });

  test('keeps clients at their remaining endpoints while the table is outdated', () => {
    const allStats = endpointStatsList(10);
    const old = maglevOf(allStats);
    const before = buildPool(poolOf([]), allStats, { zone: null, maglev: old });
    const owners = CLIENTS.map((client) => choose(before, client));
    const left = allStats.slice(0, 6);
    const after = buildPool(before, left, { zone: null, maglev: old });
    for (const [i, client] of CLIENTS.entries()) {
      const owner = owners[i] as EndpointStats;
      const chosen = choose(after, client);
      assert.ok(left.includes(chosen));
      if (left.includes(owner)) assert.equal(chosen, owner);
    }
  });

  test('hashes TCP clients by address, and UDP flows by address and port', () => {
    const pool = poolOf(endpointStatsList(10));
    const udp = createBalancer(routeOf({ algorithm: 'maglev' }, { protocol: 'UDP' }), balancerOptions(1));
    const ports = Array.from({ length: 100 }, (_, i) => clientOf(1, 1_000 + i));
    assert.equal(new Set(ports.map((client) => choose(pool, client))).size, 1);
    assert.equal(new Set(ports.map((client) => udp.choose(pool, client, []))).size, 10);
    assert.equal(udp.choose(pool, clientOf(1), []), udp.choose(pool, clientOf(1), []));
  });

  function choose(
    pool: ReturnType<typeof poolOf>,
    client: ReturnType<typeof clientOf>,
    tried: readonly EndpointStats[] = [],
  ): EndpointStats {
    const chosen = balancer.choose(pool, client, tried);
    assert.ok(chosen);
    return chosen;
  }
});
