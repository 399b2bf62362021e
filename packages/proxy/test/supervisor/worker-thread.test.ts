import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { heapLimitMb } from '../../src/supervisor/worker-thread.ts';

const GIB = 2 ** 30;

test('heapLimitMb gives all workers at most half of the memory, and each worker at least 128 MiB', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 256 }), fc.integer({ min: 1, max: 4_096 }), (workers, gib) => {
      const limit = heapLimitMb(gib * GIB, workers);
      assert.ok(limit >= 128 && limit <= 4_096);
      assert.ok(limit === 128 || limit * workers <= (gib * 1_024) / 2);
    }),
  );
});
