import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { exchangeIntervalMs, type ShareClaim, sharesFor, ungrantedShare, wantedShare } from '@weir/model';
import fc from 'fast-check';

const limits = fc.oneof(fc.nat(50), fc.nat(100_000), fc.integer({ min: 0, max: 2 ** 53 - 1 }));
const members = fc.array(
  fc.record({ demandPart: fc.double({ min: 0, max: 2, noNaN: true }), weight: fc.integer({ min: 1, max: 1_000 }) }),
  { minLength: 1, maxLength: 20 },
);

/** Limits with claims; no floors. */
const questions = fc.tuple(limits, members).map(([limit, parts]) => ({
  limit,
  claims: parts.map(({ demandPart, weight }) => claim(Math.round(demandPart * Math.min(limit, 2 ** 52)), { weight })),
}));

describe('the shares of a limit', () => {
  test('are whole, not negative, and add up to the limit', () => {
    fc.assert(
      fc.property(questions, ({ limit, claims }) => {
        const shares = sharesFor(limit, claims);
        assert.ok(shares.every((share) => Number.isSafeInteger(share) && share >= 0));
        assert.equal(total(shares), BigInt(limit));
      }),
      { numRuns: 1_000 },
    );
  });

  test('add up to the limit and are at least the floors, or are the floors if these exceed the limit', () => {
    const floors = fc.array(fc.nat(100), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(fc.nat(500), floors, fc.nat(300), (limit, floorOf, more) => {
        const claims = floorOf.map((floor, index) => claim(floor + (index % 2) * more, { floor }));
        const shares = sharesFor(limit, claims);
        const sumOfFloors = floorOf.reduce((sum, floor) => sum + floor, 0);
        if (sumOfFloors >= limit) assert.deepEqual(shares, floorOf);
        else assert.equal(total(shares), BigInt(limit));
        for (const [index, share] of shares.entries()) assert.ok(share >= (floorOf[index] ?? 0));
      }),
    );
  });

  test('are never zero if the limit has a unit for each member', () => {
    fc.assert(
      fc.property(questions, ({ limit, claims }) => {
        fc.pre(limit >= claims.length);
        assert.ok(sharesFor(limit, claims).every((share) => share >= 1));
      }),
    );
  });

  test('meet every demand if the limit suffices', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 10 }), fc.nat(500), (demands, more) => {
        const needed = demands.reduce((sum, demand) => sum + demand, 0);
        // An idle member keeps at most a unit or a 50th of the limit; this limit has room for both.
        const limit = Math.ceil((needed + demands.length + more) * 1.03);
        const shares = sharesFor(
          limit,
          demands.map((demand) => claim(demand)),
        );
        for (const [index, share] of shares.entries()) assert.ok(share >= (demands[index] ?? 0));
      }),
    );
  });

  test('are max-min fair: an unmet member gets no less per weight than any member above its idle share', () => {
    fc.assert(
      fc.property(questions, ({ limit, claims }) => {
        const shares = sharesFor(limit, claims);
        const idleShare = Math.max(1, Math.floor(limit / (50 * claims.length)));
        // Each share is rounded by less than a unit; large numbers have a rounding error, too.
        const rounding = 2 + limit * 1e-12;
        const levels = shares.map((share, index) => share / (claims[index]?.weight ?? 1));
        for (const [unmet, share] of shares.entries()) {
          const { demand, weight } = claims[unmet] ?? claim(0);
          if (share >= demand - rounding) continue;
          for (const [other, otherShare] of shares.entries()) {
            const tolerance = rounding / Math.min(weight, claims[other]?.weight ?? 1);
            if (otherShare > idleShare + 1) assert.ok((levels[other] ?? 0) <= (levels[unmet] ?? 0) + tolerance);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('do not shrink if the demand of their member grows', () => {
    fc.assert(
      fc.property(questions, fc.nat(10_000), ({ limit, claims }, more) => {
        fc.pre(limit < 2 ** 40);
        const [first = claim(0), ...others] = claims;
        const before = wantedShare({ limit, own: first, others, rank: 0 });
        const after = wantedShare({ limit, own: { ...first, demand: first.demand + more }, others, rank: 0 });
        assert.ok(after >= before - 1, `${before} → ${after}`);
      }),
    );
  });

  test('give a member that is alone the whole limit', () => {
    fc.assert(
      fc.property(limits, fc.nat(10), (limit, demand) => {
        assert.equal(wantedShare({ limit, own: claim(demand), others: [], rank: 0 }), limit);
      }),
    );
  });

  test('leave a busy member 98 % if the other members are idle, or all but one unit for each member', () => {
    const idle = Array.from({ length: 9 }, () => claim(0));
    assert.equal(wantedShare({ limit: 10_000, own: claim(20_000), others: idle, rank: 4 }), 10_000 - 9 * 20);
    assert.equal(wantedShare({ limit: 200, own: claim(400), others: idle, rank: 0 }), 191);
  });

  test('divide by weight what the demands exceed', () => {
    const claims = [claim(1_000, { weight: 3 }), claim(1_000, { weight: 1 }), claim(100, { weight: 1 })];
    assert.deepEqual(sharesFor(900, claims), [600, 200, 100]);
  });

  test('leave open connections in place and give the rest to the member below the common level', () => {
    assert.deepEqual(sharesFor(100, [claim(60, { floor: 60 }), claim(100)]), [60, 40]);
  });

  test('divide what nobody needs by need, as if each member needed half of an equal part more', () => {
    assert.deepEqual(sharesFor(99, [claim(10), claim(0), claim(0)]), [49, 25, 25]);
    assert.deepEqual(sharesFor(99, [claim(0), claim(0), claim(0)]), [33, 33, 33]);
  });

  test('are the same at every member', () => {
    fc.assert(
      fc.property(questions, ({ limit, claims }) => {
        const own = claims.map((each, rank) =>
          wantedShare({ limit, own: each, others: claims.toSpliced(rank, 1), rank }),
        );
        assert.deepEqual(own, sharesFor(limit, claims));
      }),
    );
  });

  test('are a tenth of the limit, and at least one unit, if the store has granted none', () => {
    assert.deepEqual([0, 1, 5, 100, 1_005].map(ungrantedShare), [0, 1, 1, 10, 100]);
  });
});

test('a lease is exchanged twice a second, more often if tight or unsettled, less often with many members', () => {
  const claims = (count: number, demand: number): ShareClaim[] => Array.from({ length: count }, () => claim(demand));
  const settled = { limit: 100, share: 25, wanted: 26, held: 25, hasDemandChanged: false };
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17) }), 500);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 18) }), 100);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), wanted: 36 }), 50);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), held: 36 }), 50);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), held: 35 }), 500);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 18), held: 28 }), 50);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), hasDemandChanged: true }), 50);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), share: 0, wanted: 1, held: 0 }), 50);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(4, 17), share: 0, wanted: 0, held: 0 }), 500);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(40, 21) }), 200);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(30, 1) }), 750);
  assert.equal(exchangeIntervalMs({ ...settled, claims: claims(1_000, 0) }), 2_000);
});

function claim(demand: number, { weight = 1, floor = 0 }: Partial<ShareClaim> = {}): ShareClaim {
  return { demand, weight, floor, used: 0 };
}

/** Adds exactly; the sum may exceed 2^53. */
function total(shares: readonly number[]): bigint {
  return shares.reduce((sum, share) => sum + BigInt(share), 0n);
}
