import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { configureLimiter, Limiter } from '../../src/limits/limiter.ts';
import { createLimiterStateMemory, LimiterState } from '../../src/limits/limiter-state.ts';

const WORKERS = 3;
const ROW = 5;
const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
};

function sharedBudget(limits: Partial<typeof UNLIMITED>): { sheet: LimiterState; workers: Limiter[] } {
  const memory = createLimiterStateMemory(WORKERS);
  const sheet = new LimiterState(memory);
  configureLimiter(sheet, ROW, { limits: { ...UNLIMITED, ...limits }, now: 0n });
  const workers = Array.from(
    { length: WORKERS },
    (_, column) => new Limiter(new LimiterState(memory), { row: ROW, column }),
  );
  return { sheet, workers };
}

const act = fc.record({
  worker: fc.nat(WORKERS - 1),
  what: fc.constantFrom('open', 'open', 'open', 'close', 'dies'),
});

test('never more than the limit are open over all workers, and what a dead worker had comes back', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 80 }), fc.nat(6), (acts, most) => {
      const { sheet, workers } = sharedBudget({ connections: most });
      const open = workers.map(() => 0);
      const sum = (): number => open.reduce((all, each) => all + each, 0);
      for (const { worker, what } of acts) {
        const budget = workers[worker] as Limiter;
        const mine = open[worker] as number;
        if (what === 'open') {
          const isOpen = budget.tryOpen();
          // Nobody else is in the middle of asking: then the limit is used to the last place.
          assert.equal(isOpen, sum() < most);
          if (isOpen) open[worker] = mine + 1;
        } else if (what === 'close' && mine > 0) {
          budget.close();
          open[worker] = mine - 1;
        } else if (what === 'dies') {
          sheet.clearWorker(worker);
          open[worker] = 0;
        }
        assert.equal(sheet.openCount(ROW), sum());
        assert.ok(sum() <= most);
      }
    }),
  );
});

test('new connections of all workers together keep to the rate, and to one second of it at once', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.array(fc.record({ worker: fc.nat(WORKERS - 1), afterMs: fc.nat(20) }), { maxLength: 100 }),
      (rate, asked) => {
        const { workers } = sharedBudget({ newConnectionsPerSecond: rate });
        let now = 1_000_000_000_000n;
        const start = now;
        let taken = 0;
        for (const { worker, afterMs } of asked) {
          now += BigInt(afterMs) * 1_000_000n;
          if ((workers[worker] as Limiter).tryTakeNew(() => now)) taken += 1;
        }
        const seconds = 1 + Number(now - start) / 1e9;
        assert.ok(taken <= rate * seconds + 1e-6, `${taken} in ${seconds} s at ${rate}`);
        assert.ok(taken >= Math.min(asked.length, rate));
      },
    ),
  );
});

test('a limit of 0 lets nothing in, and no limit everything', () => {
  const none = sharedBudget({ connections: 0, newConnectionsPerSecond: 0 }).workers[0] as Limiter;
  assert.equal(none.tryOpen(), false);
  assert.equal(
    none.tryTakeNew(() => 1n),
    false,
  );
  const all = sharedBudget({}).workers[0] as Limiter;
  assert.equal(all.tryOpen(), true);
  assert.equal(
    all.tryTakeNew(() => 1n),
    true,
  );
});

test('who follows a change of the rate owes the same bytes', () => {
  const { sheet, workers } = sharedBudget({ inBitsPerSecond: 8_000 });
  const budget = workers[0] as Limiter;
  const now = 10_000_000_000n;
  assert.equal(budget.charge('in', 1_050, now), now + 1_000_000_000n);
  configureLimiter(sheet, ROW, { limits: { ...UNLIMITED, inBitsPerSecond: 16_000 }, now });
  assert.equal(budget.paidUntil('in'), now + 500_000_000n);
});
