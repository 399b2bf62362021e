import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type HostileReading,
  type HostileRow,
  hostileTable,
  meetsTarget,
  summarizeHostile,
} from '../../src/hostile/hostile-result.ts';

const reading = (attackedP99: number, workerEnds = 0): HostileReading => ({
  quiet: { p50: 0.2, p99: 2 },
  attacked: { p50: 1, p99: attackedP99 },
  cpuSeconds: 2,
  memoryMiB: 100,
  workerEnds,
  accepted: 'half',
  bounded: [],
});

const row = (...readings: HostileReading[]) =>
  summarizeHostile('handshakes', { readings, target: { maxP99RiseMs: 25 } });

describe('hostile', () => {
  test('compares the latency during the attack with the latency before the attack', () => {
    const cells = hostileTable([row(reading(22), reading(12), reading(32))])[2]
      ?.split('|')
      .map((cell) => cell.trim());
    assert.deepEqual(cells?.slice(1, -1), [
      ...['handshakes', '0.2', '1.0', '2.0', '22.0', '20.0 (15.0–25.0)', '2.0', '100', '0'],
      '≤ 25 ms, no worker ends: met',
    ]);
  });

  test('misses the target if the latency rises too much or a worker ends', () => {
    assert.equal(meetsTarget(row(reading(27))), true);
    assert.equal(meetsTarget(row(reading(27.1))), false);
    assert.equal(meetsTarget(row(reading(2), reading(2, 1))), false);
  });

  test('compares the ratio of the latencies with its target', () => {
    const withRatio = (attackedP99: number): HostileRow =>
      summarizeHostile('http2-idle', { readings: [reading(attackedP99)], target: { maxP99Ratio: 2 } });
    assert.equal(meetsTarget(withRatio(4)), true);
    assert.equal(meetsTarget(withRatio(4.1)), false);
    assert.match(hostileTable([withRatio(4)])[2] ?? '', /≤ 2 × p99, no worker ends: met/);
  });

  test('compares the medians of the other values with their targets', () => {
    const withShares = (...shares: readonly number[]): HostileRow =>
      row(...shares.map((value) => ({ ...reading(2), bounded: [{ value, min: 0.8, miss: 'too slow' }] })));
    assert.deepEqual(withShares(0.7, 0.8, 0.9).missedTargets, []);
    assert.deepEqual(withShares(0.7, 0.79, 0.9).missedTargets, ['too slow']);
    assert.equal(meetsTarget(withShares(0.7)), false);
  });
});
