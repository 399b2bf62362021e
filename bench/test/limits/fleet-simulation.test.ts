import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type SimulationOptions, simulateFleet } from '../../src/limits/fleet-simulation.ts';

const LIMIT = 600;
const fleet: Omit<SimulationOptions, 'offered'> = {
  proxies: 3,
  tenants: 3,
  proxiesPerTenant: 3,
  limit: LIMIT,
  arrivals: 'regular',
  seconds: 30,
  roundTripMs: 10,
  seed: 1,
};

/** The units per second that clients offer at each proxy, and the error that the leases may add to the error of a single proxy. */
const LOADS: readonly { readonly name: string; readonly maxLoss: number; offered: SimulationOptions['offered'] }[] = [
  { name: 'even', maxLoss: 0.02, offered: () => LIMIT / 2 },
  { name: 'skewed', maxLoss: 0.02, offered: (index) => (index === 0 ? 1.2 * LIMIT : 0.1 * LIMIT) },
  { name: 'on one proxy', maxLoss: 0.04, offered: (index) => (index === 1 ? 2 * LIMIT : 0) },
  {
    name: 'on another proxy every 10 s',
    maxLoss: 0.06,
    offered: (index, seconds) => (index === Math.floor(seconds / 10) % 3 ? 2 * LIMIT : 0),
  },
  { name: 'below the limit', maxLoss: 0, offered: () => 0.25 * LIMIT },
];

describe('a simulated fleet', () => {
  for (const { name, maxLoss, offered } of LOADS) {
    test(`uses the limit and never more with a load that is ${name}`, () => {
      const result = simulateFleet({ ...fleet, offered });
      assert.equal(result.violations, 0);
      assert.ok(result.busiestSecond <= 1, `${result.busiestSecond}`);
      assert.ok(result.worstError >= -maxLoss, `${result.worstError}`);
    });
  }

  test('never exceeds the limit with random arrivals', () => {
    const result = simulateFleet({ ...fleet, arrivals: 'random', offered: () => LIMIT / 2 });
    assert.equal(result.violations, 0);
    assert.ok(result.busiestSecond <= 1);
    assert.ok(result.worstError >= -0.05, `${result.worstError}`);
  });

  test('never exceeds the limit when proxies die and return, and uses the share of a dead proxy after some seconds', () => {
    const result = simulateFleet({
      ...fleet,
      tenants: 1,
      seconds: 40,
      offered: () => LIMIT,
      deaths: [
        { proxy: 1, atSecond: 15, backAtSecond: 17 },
        { proxy: 2, atSecond: 25, backAtSecond: 100 },
      ],
    });
    assert.equal(result.violations, 0);
    assert.ok(result.busiestSecond <= 1);
    // A third of the limit is unused for at most 4 s of the worst 10 s.
    assert.ok(result.worstError >= -0.14 && result.worstError <= -0.1, `${result.worstError}`);
  });

  test('exchanges each lease once per second if the demand is far below the limit, in one call per proxy', () => {
    const result = simulateFleet({ ...fleet, proxies: 30, tenants: 100, offered: (index) => 20 * index });
    assert.ok(result.leasesPerSecond <= 1.2 * 300, `${result.leasesPerSecond}`);
    assert.ok(result.callsPerSecond <= 1.5 * 30, `${result.callsPerSecond}`);
  });
});
