import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type SimulationOptions, simulateFleet } from '../../src/limits/fleet-simulation.ts';

const LIMIT = 600;
const fleet: Omit<SimulationOptions, 'offered'> = {
  proxies: 3,
  tenants: 1,
  proxiesPerTenant: 3,
  limit: LIMIT,
  arrivals: 'random',
  seconds: 40,
  roundTripMs: 10,
  seed: 1,
};

/** Returns the units per second that clients offer at each of `count` proxies. */
type Load = (limit: number, count: number) => SimulationOptions['offered'];

const LOADS: Readonly<Record<string, Load>> = {
  even: (limit, count) => () => (1.5 * limit) / count,
  skewed: (limit, count) => (index) => (index === 0 ? 1.2 * limit : (0.3 * limit * index) / count),
  'on one proxy': (limit) => (index) => (index === 0 ? 2 * limit : 0),
  'on another proxy every 10 s': (limit, count) => (index, seconds) =>
    index === Math.floor(seconds / 10) % count ? 2 * limit : 0,
};

describe('a simulated fleet with random arrivals', () => {
  for (const perProxy of [20, 200]) {
    for (const count of [1, 3, 10]) {
      for (const [name, load] of Object.entries(LOADS)) {
        // One proxy with 20 per second is the limit of what the rule allows: see ADR 29.
        if (perProxy === 20 && count === 1 && name === 'skewed') continue;
        test(`${count} proxies with ${perProxy} per proxy: any 10 s within 5 %, any second at most 110 %, load ${name}`, () => {
          const limit = perProxy * count;
          const size = { proxies: count, proxiesPerTenant: count, limit };
          const result = simulateFleet({ ...fleet, ...size, offered: load(limit, count) });
          assert.equal(result.violations, 0);
          assert.ok(result.busiestSecond <= 1.1, `${result.busiestSecond}`);
          assert.ok(result.worstError >= -0.05 && result.highestError <= 0.05, JSON.stringify(result));
        });
      }
    }
  }

  test('below 20 per second and proxy: any second at most one unit per proxy above the limit', () => {
    for (const limit of [3, 15, 45]) {
      const result = simulateFleet({ ...fleet, limit, offered: (index) => (index === 0 ? 2 * limit : limit / 3) });
      assert.equal(result.violations, 0);
      assert.ok(Math.round(result.busiestSecond * limit) <= limit + 3, `${result.busiestSecond}`);
      assert.ok(limit * (1 - result.used) <= 3, `${result.used}`);
    }
  });

  test('admits what is offered if this is below the limit', () => {
    const result = simulateFleet({ ...fleet, offered: () => 0.25 * LIMIT });
    assert.ok(result.worstError >= -0.01, `${result.worstError}`);
  });

  test('never exceeds 110 % in a second when proxies die and return, and uses the share of a dead proxy after a second', () => {
    const result = simulateFleet({
      ...fleet,
      offered: () => LIMIT,
      absences: [
        { proxy: 1, kind: 'killed', atSecond: 15, backAtSecond: 17 },
        { proxy: 2, kind: 'killed', atSecond: 25, backAtSecond: 100 },
      ],
    });
    assert.equal(result.violations, 0);
    assert.ok(result.busiestSecond <= 1.1, `${result.busiestSecond}`);
    // A third of the limit is unused for a second of the worst 10 s, until the controller returns it.
    assert.ok(result.worstError >= -0.05 && result.worstError <= -0.02, `${result.worstError}`);
  });

  for (const kind of ['killed', 'drained'] as const) {
    test(`stays within 110 % in a second, and a proxy that starts serves within a second, however soon a ${kind} proxy returns`, () => {
      for (const load of [0.05, 0.8, 1, 1.5]) {
        for (const absentSeconds of [0.1, 0.3, 0.8, 1.2, 1.5, 2.2, 3, 6]) {
          const absences = [{ proxy: 1, kind, atSecond: 10, backAtSecond: 10 + absentSeconds }];
          const result = simulateFleet({ ...fleet, seconds: 25, offered: () => (load * LIMIT) / 3, absences });
          const name = `load ${load}, absent for ${absentSeconds} s: ${JSON.stringify(result)}`;
          assert.equal(result.violations, 0, name);
          assert.ok(result.busiestSecond <= 1.1, name);
          assert.ok((result.servesAfterSeconds ?? 2) < 1, name);
          assert.ok(result.worstError >= -0.06, name);
        }
      }
    });
  }

  test('exchanges each lease about twice per second if the demand is far below the limit, in few calls', () => {
    const result = simulateFleet({ ...fleet, proxies: 30, tenants: 100, offered: (index) => 20 * index });
    assert.ok(result.leasesPerSecond <= 2.2 * 300, `${result.leasesPerSecond}`);
    assert.ok(result.callsPerSecond <= 3 * 30, `${result.callsPerSecond}`);
  });
});
