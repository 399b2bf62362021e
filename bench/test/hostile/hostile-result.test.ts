import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type HostileReading, hostileTable, meetsTarget, summarizeHostile } from '../../src/hostile/hostile-result.ts';

const reading = (attackedP99: number, workerEnds = 0): HostileReading => ({
  quiet: { p50: 0.2, p99: 2 },
  attacked: { p50: 1, p99: attackedP99 },
  cpuSeconds: 2,
  memoryMiB: 100,
  workerEnds,
  accepted: 'half',
  missedTargets: [],
});

const row = (...readings: HostileReading[]) => summarizeHostile('handshakes', { readings, maxP99RiseMs: 25 });

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
    assert.equal(meetsTarget(row(reading(2), { ...reading(2), missedTargets: ['too much memory'] })), false);
  });
});
