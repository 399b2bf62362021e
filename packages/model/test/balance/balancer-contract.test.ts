// Checks the contract that every balancer must fulfil.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildPool, createBalancer, type EndpointStats, type ServiceSettings, updateEndpointStats } from '@weir/model';
import fc from 'fast-check';
import { balancerOptions, clientOf, endpointStatsList, poolOf, routeOf } from '../fixtures/balance.ts';

const KINDS: Readonly<Record<string, Partial<ServiceSettings>>> = {
  'least-connections': { algorithm: 'least-connections' },
  'round-robin': { algorithm: 'round-robin' },
  random: { algorithm: 'random' },
  maglev: { algorithm: 'maglev' },
  first: { algorithm: 'first' },
  'client-ip': { affinity: { kind: 'client-ip', timeoutMs: 10_800_000 } },
};
const KEEPERS = ['maglev', 'first', 'client-ip'];

/** Returns the list, and a function that returns how many items were read from the list. */
function countReads<T>(items: readonly T[]): { readonly list: readonly T[]; readonly reads: () => number } {
  let count = 0;
  const list = new Proxy(items, {
    get(target, key) {
      if (typeof key === 'string' && /^\d+$/.test(key)) count += 1;
      return Reflect.get(target, key);
    },
  });
  return { list, reads: () => count };
}

const PROTOCOLS = ['TCP', 'UDP'] as const;

for (const [name, settings] of Object.entries(KINDS)) {
  for (const protocol of PROTOCOLS) {
    const create = (seed: number) => createBalancer(routeOf(settings, { protocol }), balancerOptions(seed));

    describe(`${name} for ${protocol}`, () => {
      test('chooses an endpoint of the pool, and none from an empty pool', () => {
        fc.assert(
          fc.property(fc.integer(), fc.array(fc.nat(8), { minLength: 1, maxLength: 10 }), (seed, counts) => {
            const balancer = create(seed);
            for (const count of counts) {
              const allStats = endpointStatsList(count);
              const chosen = balancer.choose(poolOf(allStats), clientOf(seed & 0xffff), []);
              assert.equal(chosen === undefined, count === 0);
              assert.ok(chosen === undefined || allStats.includes(chosen));
            }
          }),
          { numRuns: 20 },
        );
      });

      test('never chooses a tried endpoint, and returns undefined when all were tried', () => {
        const allStats = endpointStatsList(6, (i) => (i < 2 ? 'a' : 'b'));
        const pool = poolOf(allStats, 'a');
        const balancer = create(5);
        for (let client = 0; client < 50; client += 1) {
          const tried: EndpointStats[] = [];
          for (let chosen = choice(); chosen !== undefined; chosen = choice()) tried.push(chosen);
          assert.equal(new Set(tried).size, 6);
          const zones = tried.map(({ endpoint }) => endpoint.zone).join('');
          assert.equal(zones, 'aabbbb', 'the own zone first, the others only when it is used up');
          function choice(): EndpointStats | undefined {
            assert.ok(tried.length <= 6);
            return balancer.choose(pool, clientOf(client), tried);
          }
        }
      });

      test('reads hardly more endpoints for a retry than for a first choice', () => {
        const pool = poolOf(endpointStatsList(1_000));
        const balancer = create(9);
        const readsFor = (tried: readonly EndpointStats[]): number => {
          const preferred = countReads(pool.preferred);
          balancer.choose({ ...pool, preferred: preferred.list }, clientOf(1), tried);
          return preferred.reads();
        };
        const first = readsFor([]);
        for (let count = 1; count < 4; count += 1)
          assert.ok(readsFor(pool.all.slice(0, count)) <= first + 20, `${count} tried`);
      });

      test('treats an endpoint that left and returned as tried', () => {
        const [old] = endpointStatsList(1);
        const [back, other] = endpointStatsList(2);
        assert.ok(old && back && other);
        for (let i = 0; i < 20; i += 1) {
          assert.equal(create(i).choose(poolOf([back, other]), clientOf(i), [old]), other);
        }
      });

      test('prefers healthy endpoints of its zone, then healthy endpoints, then any', () => {
        const allStats = endpointStatsList(8, (i) => (i < 4 ? 'a' : 'b'));
        const chosenFrom = (pool: ReturnType<typeof poolOf>): Set<string | undefined> => {
          const balancer = create(3);
          const seen = new Set<string | undefined>();
          for (let i = 0; i < 200; i += 1) {
            const chosen = balancer.choose(pool, clientOf(i), []);
            assert.ok(chosen);
            seen.add(`${chosen.endpoint.zone}${chosen.isHealthy ? '' : ' unhealthy'}`);
          }
          return seen;
        };
        assert.deepEqual(chosenFrom(poolOf(allStats, 'a')), new Set(['a']));
        for (const stats of allStats.slice(0, 3)) stats.isHealthy = false;
        assert.deepEqual(chosenFrom(poolOf(allStats, 'a')), new Set(['a']));
        for (const stats of allStats.slice(0, 4)) stats.isHealthy = false;
        assert.deepEqual(chosenFrom(poolOf(allStats, 'a')), new Set(['b']));
        for (const stats of allStats) stats.isHealthy = false;
        assert.deepEqual(chosenFrom(poolOf(allStats, 'a')), new Set(['a unhealthy']));
      });

      test('keeps choosing over any history of endpoints and health', () => {
        const step = fc.record({
          up: fc.subarray([0, 1, 2, 3, 4, 5, 6, 7]),
          unhealthy: fc.subarray([0, 1, 2, 3, 4, 5, 6, 7]),
        });
        fc.assert(
          fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), fc.nat(1000), (history, seed) => {
            const everyone = endpointStatsList(8, (i) => 'ab'[i % 2] ?? '');
            const balancer = create(seed);
            let pool = poolOf([]);
            for (const { up, unhealthy } of history) {
              const endpoints = everyone.filter((_, i) => up.includes(i)).map(({ endpoint }) => endpoint);
              const allStats = updateEndpointStats(endpoints, pool.all, { now: 0, departed: () => undefined });
              for (const [i, stats] of allStats.entries()) stats.isHealthy = !unhealthy.includes(i);
              // Keeps the first Maglev table, as if the main thread had not delivered a newer table yet.
              const { maglev } = pool.maglev === undefined ? poolOf(allStats) : pool;
              pool = buildPool(pool, allStats, { zone: 'a', maglev });
              const chosen = balancer.choose(pool, clientOf(seed), []);
              assert.equal(chosen === undefined, allStats.length === 0);
              assert.ok(chosen === undefined || pool.preferred.includes(chosen));
            }
          }),
          { numRuns: 30 },
        );
      });

      if (KEEPERS.includes(name)) {
        test('gives a client the same endpoint in every worker and on every proxy', () => {
          for (let i = 0; i < 200; i += 1) {
            const [here, there] = [create(1), create(2)].map((balancer) =>
              balancer.choose(poolOf(endpointStatsList(7)), clientOf(i), []),
            );
            assert.deepEqual(here?.endpoint, there?.endpoint);
          }
        });
      }

      if (name !== 'first') {
        test('spreads many clients over all endpoints', () => {
          const balancer = create(7);
          const allStats = endpointStatsList(5);
          const pool = poolOf(allStats);
          for (let i = 0; i < 5_000; i += 1) {
            const chosen = balancer.choose(pool, clientOf(i), []);
            if (chosen) chosen.activeConnections += 1;
          }
          // The tolerance is five standard deviations of 5,000 uniform choices among five endpoints.
          for (const { activeConnections } of allStats)
            assert.ok(Math.abs(activeConnections - 1_000) < 142, `${activeConnections} of 1000 expected`);
        });
      }
    });
  }
}
