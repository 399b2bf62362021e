import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEASED_RESOURCES } from '@weir/model/data-plane';
import fc from 'fast-check';
import { DemandWindow } from '../../src/limits/lease-demand.ts';
import type { RowDemand } from '../../src/limits/limiter-registry.ts';

const IDLE: RowDemand = {
  open: 0,
  admittedNew: 0,
  admittedRequests: 0,
  waitingIn: 0,
  waitingOut: 0,
  refusedOpen: 0,
  offeredNew: 0,
  offeredRequests: 0,
  inBytes: 0,
  outBytes: 0,
};
const STEP_MS = 100;

/** Returns a window that has seen the given samples, one every 100 ms. */
function windowOf(...samples: Partial<RowDemand>[]): DemandWindow {
  const window = new DemandWindow();
  for (const [index, sample] of samples.entries()) window.add({ ...IDLE, ...sample }, index * STEP_MS);
  return window;
}

function repeat(count: number, sample: (index: number) => Partial<RowDemand>): Partial<RowDemand>[] {
  return Array.from({ length: count }, (_, index) => sample(index));
}

test('new connections: claims what is offered, also if it is refused, over the last second', () => {
  const window = windowOf(...repeat(31, (index) => ({ offeredNew: index * 5, admittedNew: 8 })));
  assert.deepEqual(window.demandFor('newConnectionsPerSecond', 10), {
    claim: { demand: 50, weight: 1, floor: 0, used: 8 },
    used: 8,
  });
});

test('new connections: a rate that rises or falls clearly is noticed with the next sample', () => {
  const steady = repeat(11, (index) => ({ offeredNew: index * 20 }));
  const at = (offeredNew: number): number =>
    windowOf(...steady, { offeredNew }).demandFor('newConnectionsPerSecond', 1_000).claim.demand;
  assert.equal(at(200 + 20), 200);
  // A deviation of less than three standard deviations may be chance.
  assert.equal(at(200 + 30), 210);
  assert.equal(at(200 + 50), 500);
  assert.equal(at(200), 0);
});

test('requests have a rate of their own', () => {
  const window = windowOf(
    ...repeat(11, (index) => ({ offeredRequests: index * 7, admittedRequests: 60, offeredNew: index })),
  );
  assert.deepEqual(window.demandFor('requestsPerSecond', 60), {
    claim: { demand: 70, weight: 1, floor: 0, used: 60 },
    used: 60,
  });
});

test('connections: claims the open and the refused connections, and never gives up open ones', () => {
  const window = windowOf(...repeat(31, (index) => ({ open: 10, refusedOpen: index })));
  assert.deepEqual(window.demandFor('connections', 8), {
    claim: { demand: 20, weight: 1, floor: 10, used: 0 },
    used: 10,
  });
});

test('bandwidth: claims a quarter more than is used, and at most the limit', () => {
  const window = windowOf(...repeat(11, (index) => ({ inBytes: index * 1_000 })));
  assert.equal(window.demandFor('inBitsPerSecond', 1_000_000).claim.demand, 100_000);
  assert.equal(window.demandFor('inBitsPerSecond', 90_000).claim.demand, 90_000);
  assert.equal(window.demandFor('outBitsPerSecond', 90_000).claim.demand, 0);
});

test('bandwidth: claims the whole limit while readers wait, weighted by their number', () => {
  const window = windowOf(...repeat(11, (index) => ({ outBytes: index, waitingOut: 4 })));
  assert.deepEqual(window.demandFor('outBitsPerSecond', 1_000), {
    claim: { demand: 1_000, weight: 4, floor: 0, used: 0 },
    used: 0,
  });
});

test('samples that follow each other at once do not make a few units a high rate', () => {
  const window = new DemandWindow();
  for (let at = 0; at <= 1_000; at += 100) window.add({ ...IDLE, offeredNew: at / 100 }, at);
  window.add({ ...IDLE, offeredNew: 14 }, 1_001);
  assert.ok(window.demandFor('newConnectionsPerSecond', 100).claim.demand <= 60);
});

test('returns the same demand object until a sample differs', () => {
  const state = { open: 3, offeredNew: 7, outBytes: 900 };
  const window = new DemandWindow();
  const demands = repeat(40, () => state).map((sample, index) => {
    window.add({ ...IDLE, ...sample }, index * STEP_MS);
    return window.demandFor('connections', 10);
  });
  assert.equal(demands[39], demands[0]);
  window.add({ ...IDLE, ...state, refusedOpen: 2 }, 40 * STEP_MS);
  assert.equal(window.demandFor('connections', 10).claim.demand, 5);
});

test('a reused demand equals a newly measured demand', () => {
  const step = fc.record({
    gapMs: fc.constantFrom(1, 30, 50, 200, 1_100),
    resource: fc.constantFrom(...LEASED_RESOURCES),
    limit: fc.constantFrom(10, 1_000),
    increases: fc.option(fc.constantFrom('refusedOpen', 'offeredNew', 'inBytes', 'outBytes'), { nil: undefined }),
    toggles: fc.option(fc.constantFrom('open', 'waitingOut', 'admittedNew'), { nil: undefined }),
    repeated: fc.integer({ min: 1, max: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const window = new DemandWindow();
      const added: [row: RowDemand, at: number][] = [];
      let row = IDLE;
      let at = 0;
      for (const { gapMs, resource, limit, increases, toggles, repeated } of steps) {
        if (increases !== undefined) row = { ...row, [increases]: row[increases] + 1 };
        if (toggles !== undefined) row = { ...row, [toggles]: 1 - row[toggles] };
        for (let count = 0; count < repeated; count += 1) {
          at += gapMs;
          window.add(row, at);
          added.push([row, at]);
          const fresh = new DemandWindow();
          for (const sample of added) fresh.add(...sample);
          assert.deepEqual(window.demandFor(resource, limit), fresh.demandFor(resource, limit));
        }
      }
    }),
  );
});
