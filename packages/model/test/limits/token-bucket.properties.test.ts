import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chargeToRate, rescalePaidUntil, takeWithinRate } from '@weir/model';
import fc from 'fast-check';

const SECOND = 1_000_000_000n;
const START = 5n * SECOND;

const pace = fc.record({
  ratePerSecond: fc.integer({ min: 1, max: 2_000_000_000 }),
  burstNs: fc.bigInt({ min: 0n, max: 2n * SECOND }),
});
const steps = fc.array(
  fc.record({ count: fc.integer({ min: 1, max: 100_000 }), afterNs: fc.bigInt({ min: 0n, max: SECOND }) }),
  { maxLength: 50 },
);

test('never takes more than burst + rate·t in any interval of t seconds', () => {
  fc.assert(
    fc.property(pace, steps, (limit, asked) => {
      const taken: { readonly at: bigint; readonly count: number }[] = [];
      let paidUntil = 0n;
      let now = START;
      for (const { count, afterNs } of asked) {
        now += afterNs;
        const next = takeWithinRate(paidUntil, count, { limit: limit, now });
        if (next === undefined) continue;
        paidUntil = next;
        taken.push({ at: now, count });
      }
      for (const [from, first] of taken.entries()) {
        let sum = 0;
        for (const { at, count } of taken.slice(from)) {
          sum += count;
          const most = (Number(limit.burstNs + at - first.at) * limit.ratePerSecond) / 1e9;
          assert.ok(sum <= most * (1 + 1e-9) + 1e-6, `${sum} of ${most}`);
        }
      }
    }),
  );
});

test('refuses only if the credit is too low', () => {
  fc.assert(
    fc.property(pace, fc.integer({ min: 1, max: 100_000 }), (limit, count) => {
      const next = takeWithinRate(0n, count, { limit: limit, now: START });
      const fits = BigInt(Math.ceil((count * 1e9) / limit.ratePerSecond)) <= limit.burstNs;
      assert.equal(next !== undefined, fits);
    }),
  );
});

test('gives a user that waits out each debt the rate plus at most one burst and one charge', () => {
  fc.assert(
    fc.property(pace, steps, (limit, asked) => {
      let paidUntil = 0n;
      let now = START;
      let sum = 0;
      let last = 0;
      for (const { count, afterNs } of asked) {
        now = (now > paidUntil ? now : paidUntil) + afterNs;
        paidUntil = chargeToRate(paidUntil, count, { limit: limit, now });
        sum += count;
        last = count;
      }
      const most = (Number(limit.burstNs + now - START) * limit.ratePerSecond) / 1e9 + last;
      assert.ok(sum <= most * (1 + 1e-9) + 1e-6, `${sum} of ${most}`);
    }),
  );
});

test('takes nothing and owes nothing at a rate of 0', () => {
  const none = { ratePerSecond: 0, burstNs: SECOND };
  assert.equal(takeWithinRate(0n, 1, { limit: none, now: START }), undefined);
  assert.equal(chargeToRate(7n, 1, { limit: none, now: START }), 7n);
});

test('keeps a debt and a credit in units when the rate changes, and caps the credit at the burst', () => {
  const burstNs = SECOND / 2n;
  const from100 = { from: 100, now: START, burstNs };
  assert.equal(rescalePaidUntil(START + SECOND, { ...from100, to: 50 }), START + 2n * SECOND);
  assert.equal(rescalePaidUntil(START - SECOND / 4n, { ...from100, to: 200 }), START - SECOND / 8n);
  assert.equal(rescalePaidUntil(0n, { ...from100, to: 200 }), START - SECOND / 4n);
});

test('forgets a debt without a limit or at the rate 0, and gives no credit at the rate 0', () => {
  const burstNs = SECOND / 2n;
  const at = { now: START, burstNs };
  assert.equal(rescalePaidUntil(START + SECOND, { ...at, from: 100, to: Number.POSITIVE_INFINITY }), START);
  assert.equal(rescalePaidUntil(0n, { ...at, from: Number.POSITIVE_INFINITY, to: 100 }), 0n);
  assert.equal(rescalePaidUntil(0n, { ...at, from: 0, to: 100 }), START);
});

const rate = fc.integer({ min: 1, max: 2_000_000_000 });

test('a change of the rate never gives more units than the former credit or the new burst', () => {
  fc.assert(
    fc.property(
      fc.record({ from: rate, to: rate, burstNs: fc.bigInt({ min: 0n, max: 2n * SECOND }) }),
      fc.bigInt({ min: 0n, max: 2n * START }),
      ({ from, to, burstNs }, paidUntil) => {
        const creditAt = (until: bigint, ratePerSecond: number): number => {
          const creditNs = START - until;
          return (Number(creditNs < burstNs ? creditNs : burstNs) * ratePerSecond) / 1e9;
        };
        const before = creditAt(paidUntil, from);
        const after = creditAt(rescalePaidUntil(paidUntil, { from, to, now: START, burstNs }), to);
        // A time is a whole number of nanoseconds, and is rounded against the user.
        const rounding = 2 * (1 + to / 1e9) + Math.abs(before) * 1e-9;
        const mostAfter = Math.min(before, (Number(burstNs) * to) / 1e9);
        assert.ok(after <= mostAfter + rounding && after >= mostAfter - rounding, `${after} of ${mostAfter}`);
      },
    ),
  );
});
