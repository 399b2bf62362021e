import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseBackend, type HttpBackend } from '@weir/model';
import fc from 'fast-check';

const backendsOf = (...weights: number[]): HttpBackend[] =>
  weights.map((weight, index) => ({ service: `s${index}`, port: 80, weight }));
/** The largest number below 1 that a random generator can return. */
const ALMOST_ONE = 1 - Number.EPSILON / 2;

test('chooses backends in proportion to their weights', () => {
  const backends = backendsOf(1, 0, 3);
  const chosen = Array.from({ length: 8 }, (_, eighth) => chooseBackend(backends, eighth / 8)?.service);
  assert.deepEqual(chosen, ['s0', 's0', 's2', 's2', 's2', 's2', 's2', 's2']);
});

test('chooses nothing if no backend has a weight', () => {
  assert.equal(chooseBackend([], 0), undefined);
  assert.equal(chooseBackend(backendsOf(0, 0), 0.5), undefined);
});

test('never chooses a backend of weight 0, and otherwise always chooses', () => {
  const weights = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 1_000_000 })), { maxLength: 64 });
  const randoms = fc.oneof(fc.constantFrom(0, ALMOST_ONE), fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }));
  fc.assert(
    fc.property(weights, randoms, (list, random) => {
      const chosen = chooseBackend(backendsOf(...list), random);
      if (list.every((weight) => weight === 0)) assert.equal(chosen, undefined);
      else assert.ok(chosen !== undefined && chosen.weight > 0);
    }),
    { numRuns: 2_000 },
  );
});
