import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { largeFleetTable } from '../../src/leases/benchmark.ts';
import { PROXIES_PER_TENANT, simulateLargeFleet } from '../../src/leases/large-fleet.ts';
import { errorRange, simulateSmallFleets, smallFleetTables } from '../../src/leases/small-fleets.ts';

test('simulated fleets of 1, 3 and 10 proxies keep the precision that the docs state', () => {
  const rows = simulateSmallFleets({ seconds: 30, rounds: 1 });
  for (const row of rows) {
    const { load, ratePerProxy, lowestError, highestError, highestSecond, reachedAfterSeconds } = row;
    const where = JSON.stringify(row);
    // The share of a proxy that drains or is killed is unused for up to a second.
    const isAbsent = load.includes('a proxy');
    assert.ok(highestError <= 0.05 && highestSecond <= 1.1001, where);
    if (ratePerProxy === 200 || (!isAbsent && load.startsWith('150 %'))) assert.ok(lowestError >= -0.05, where);
    assert.ok((reachedAfterSeconds ?? 0) <= 3, where);
  }
  const text = smallFleetTables(rows).join('\n');
  assert.match(text, /\| 150 % of the limit, evenly +\| −\d to \+\d +\|/);
  assert.ok(!text.includes('NaN'));
});

test('a load below the limit shows no error above the limit', () => {
  assert.equal(errorRange({ lowestError: -0.024, highestError: 0.013 }), '−2 to +1');
  assert.equal(errorRange({ lowestError: -0.024, highestError: -0.2 }), '−2');
});

describe('a larger simulated fleet', requireProgram('redis'), () => {
  const size = { proxies: 12, tenants: 30 };

  test('states the Redis operations, bytes and memory of its leases', async () => {
    const row = await simulateLargeFleet('half', size);
    const leases = size.tenants * PROXIES_PER_TENANT;
    assert.ok(row.leasesPerSecond >= 1.9 * leases && row.leasesPerSecond <= 3 * leases, JSON.stringify(row));
    // A call takes at least one lease, and a proxy makes at most a call in 50 ms.
    assert.ok(row.callsPerSecond <= row.leasesPerSecond && row.callsPerSecond <= 20 * size.proxies);
    // GET, SET, HGET and HSET for each call, and HGETALL for each lease.
    assert.ok(row.redisCommands >= 3 * row.callsPerSecond + row.leasesPerSecond / 2, JSON.stringify(row));
    assert.ok(row.receivedBytes > 50 * row.leasesPerSecond && row.sentBytes > 0 && row.memoryBytes > 0);
    const text = largeFleetTable([row], size).join('\n');
    assert.match(text, /\| calls per proxy +\| \d/);
    assert.ok(!text.includes('NaN'));
  });
});
