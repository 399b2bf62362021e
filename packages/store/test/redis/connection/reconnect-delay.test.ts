import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { reconnectDelayMs } from '../../../src/redis/connection/redis-connection.ts';

const PROXIES = 1_000;
const WINDOW_MS = 50;

/** Returns the highest number of attempts within any window of `WINDOW_MS`. */
function peakOf(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let first = 0;
  return sorted.reduce((peak, time, index) => {
    while (time - (sorted[first] ?? 0) >= WINDOW_MS) first += 1;
    return Math.max(peak, index - first + 1);
  }, 0);
}

/** Returns a generator of uniform numbers from 0 to 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('the wait before a reconnection', () => {
  test('is at least 50 ms and at most 800 ms', () => {
    const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(anyRandom, (random) => {
        const delay = reconnectDelayMs(() => random);
        assert.ok(delay >= 50 && delay <= 800, `${delay} ms`);
      }),
    );
  });

  test('spreads 1,000 proxies that lose Redis at the same moment: at most 110 attempts in 50 ms', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = randomFrom(seed);
        const times = new Array<number>(PROXIES).fill(0);
        for (let attempt = 1; attempt <= 8; attempt += 1) {
          for (const [proxy, time] of times.entries()) times[proxy] = time + reconnectDelayMs(random);
          assert.ok(peakOf(times) <= 110, `attempt ${attempt}: ${peakOf(times)} within ${WINDOW_MS} ms`);
        }
      }),
      { numRuns: 50 },
    );
  });
});
