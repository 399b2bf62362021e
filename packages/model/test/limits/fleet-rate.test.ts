import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  hasDemandChanged,
  isolatedMeanRate,
  maxUnitsPerSecond,
  meanRate,
  rateBurstNs,
  type ShareClaim,
  takeWithinRate,
} from '@weir/model';
import fc from 'fast-check';

describe('a rate', () => {
  test('may be exceeded in a second by a tenth from 20 per member on, and by a unit for each member below', () => {
    for (const [limit, members, max] of [
      [0, 3, 0],
      [1, 1, 2],
      [19, 1, 20],
      [20, 1, 22],
      [59, 3, 62],
      [60, 3, 66],
      [2_005, 10, 2_205],
      [Number.POSITIVE_INFINITY, 3, Number.POSITIVE_INFINITY],
    ] as const)
      assert.equal(maxUnitsPerSecond(limit, members), max, `${limit}`);
  });

  test('is exceeded in 10 s by at most 3.5 % from 20 per second on, and by a unit per second below', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), (rate) => {
        const limit = { ratePerSecond: rate, burstNs: rateBurstNs(rate) };
        let paidUntil = 0n;
        let taken = 0;
        for (let now = 100_000_000_000n; now < 110_000_000_000n; now += 2_000_000n) {
          const next = takeWithinRate(paidUntil, 1, { limit, now });
          if (next === undefined) continue;
          paidUntil = next;
          taken += 1;
        }
        assert.ok(taken >= Math.floor(10 * rate) && taken <= (rate >= 20 ? 10.35 * rate + 1 : 11 * rate), `${taken}`);
      }),
    );
  });

  test('allows 35 % of a second at once, at least 7 units, but at most those of a second', () => {
    for (const [rate, units] of [
      [1, 1],
      [7, 7],
      [15, 7],
      [200, 70],
    ] as const)
      assert.equal(Math.round((Number(rateBurstNs(rate)) * rate) / 1e9), units);
  });
});

describe('the mean rate of a member', () => {
  const claims = fc.array(fc.record({ demand: fc.nat(1_000), used: fc.nat(1_000) }), { maxLength: 10 });

  test('is the limit if the member is alone or the others are idle', () => {
    assert.equal(meanRate({ limit: 50, others: [] }), 50);
    assert.equal(meanRate({ limit: 50, others: [claim(0, 0), claim(0, 0)] }), 50);
  });

  test('is what the other members leave, but at least a fair part', () => {
    assert.equal(meanRate({ limit: 100, others: [claim(10, 10), claim(20, 15)] }), 75);
    assert.equal(meanRate({ limit: 100, others: [claim(200, 90), claim(10, 10)] }), 45);
    fc.assert(
      fc.property(fc.nat(2_000), claims, (limit, others) => {
        const rate = meanRate({ limit, others: others.map(({ demand, used }) => claim(demand, used)) });
        const left = limit - others.reduce((sum, { demand, used }) => sum + Math.min(demand, used), 0);
        assert.ok(rate >= Math.max(left, limit / (others.length + 1)) - 1e-9 && rate <= limit);
      }),
    );
  });

  test('does not wait for a member whose demand has ended', () => {
    assert.equal(meanRate({ limit: 100, others: [claim(0, 100)] }), 100);
  });
});

test('the mean rates of members that hear nothing of each other add up to at most the limit', () => {
  const shares = fc.array(fc.nat(200), { minLength: 1, maxLength: 10, size: 'max' });
  fc.assert(
    fc.property(fc.nat(1_000), shares, (limit, wanted) => {
      let rest = maxUnitsPerSecond(limit, wanted.length);
      const granted = wanted.map((share) => {
        const units = Math.min(rest, share);
        rest -= units;
        return units;
      });
      const rates = granted.map((share) => isolatedMeanRate(share, { limit, members: granted.length }));
      assert.ok(rates.reduce((sum, rate) => sum + rate, 0) <= limit + 1e-9);
    }),
  );
  assert.equal(isolatedMeanRate(110, { limit: 100, members: 1 }), 100);
});

test('a demand is news if it has changed by more than a tenth of the limit and more than chance explains', () => {
  assert.equal(hasDemandChanged(48, 36, 1_000), false, 'a small part of the limit');
  assert.equal(hasDemandChanged(48, 36, 60), false, 'may be chance');
  assert.equal(hasDemandChanged(50, 36, 60), true);
  assert.equal(hasDemandChanged(300, 200, 60), false, 'both above the limit');
});

function claim(demand: number, used: number): ShareClaim {
  return { demand, weight: 1, floor: 0, used };
}
