// Tests how precisely three proxies keep a limit of requests or bandwidth together. With the manual clock, a busy machine changes
// nothing, so the bounds are those of the product: any 10 s within 5 % of the limit, any second at most 110 %.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Admitted, type FleetLimits, LimitedFleet } from '../fixtures/limited-fleet.ts';

const NODES = ['a', 'b', 'c'] as const;
const REQUESTS_PER_SECOND = 300;
const BYTES_PER_SECOND = 2_000_000;
const BITS_PER_SECOND = 8 * BYTES_PER_SECOND;
const PHASE_SECONDS = 15;
/** The share follows the clients within this time: see docs/fleet-limits.md. */
const MAX_SETTLE_SECONDS = 3;
/** The burst of 50 ms, see docs/limits.md. */
const MAX_BANDWIDTH_IN_SECOND = 1.05;

type Load = Readonly<Record<string, number>>;

/** Whose limit is tested. The limit of the other owner is wider, and must not change anything. */
function limitedBy(
  resource: 'requestsPerSecond' | 'outBitsPerSecond',
  limit: number,
): readonly [string, FleetLimits][] {
  return [
    ['a tenant', { tenant: { [resource]: limit } }],
    ['a Service below the limit of its tenant', { tenant: { [resource]: 2 * limit }, service: { [resource]: limit } }],
  ];
}

for (const [owner, limits] of limitedBy('requestsPerSecond', REQUESTS_PER_SECOND)) {
  describe(`requests per second of ${owner}`, () => {
    const half = REQUESTS_PER_SECOND / 2;
    for (const [name, first, then] of [
      ['even', { a: half, b: half, c: half }, { a: half, b: half, c: half }],
      ['skewed', { a: 360, b: 45, c: 45 }, { a: 360, b: 45, c: 45 }],
      ['on one proxy', { a: 600 }, { a: 600 }],
      ['that moves to another proxy', { a: 600 }, { b: 600 }],
    ] as const) {
      test(`are within 5 % in any 10 s, and at most 110 % in any second, with a load ${name}`, async (context) => {
        await using fleet = await LimitedFleet.start(context, NODES, limits);
        const phases = [await fleet.request(PHASE_SECONDS, first), await fleet.request(PHASE_SECONDS, then)];
        assertPrecise(phases, { limit: REQUESTS_PER_SECOND, maxInSecond: 1.1 });
      });
    }
  });
}

for (const [owner, limits] of limitedBy('outBitsPerSecond', BITS_PER_SECOND)) {
  describe(`bandwidth of ${owner}`, () => {
    for (const [name, first, then] of [
      ['even', { a: 3, b: 3, c: 3 }, { a: 3, b: 3, c: 3 }],
      ['skewed', { a: 8, b: 1, c: 1 }, { a: 8, b: 1, c: 1 }],
      ['on one proxy', { a: 4 }, { a: 4 }],
      ['that moves to another proxy', { a: 4 }, { b: 4 }],
      ['that moves to fewer streams of another proxy', { a: 9 }, { b: 1 }],
    ] as const) {
      test(`is within 5 % in any 10 s, and above the limit only by a burst, with a load ${name}`, async (context) => {
        await using fleet = await LimitedFleet.start(context, NODES, limits);
        const phases = [await fleet.stream(PHASE_SECONDS, first), await fleet.stream(PHASE_SECONDS, then)];
        assertPrecise(phases, { limit: BYTES_PER_SECOND, maxInSecond: MAX_BANDWIDTH_IN_SECOND });
      });
    }

    for (const streams of [
      { a: 1, b: 9 },
      { a: 2, b: 1, c: 5 },
    ] as readonly Load[]) {
      test(`is divided by the number of streams: ${JSON.stringify(streams)}`, async (context) => {
        await using fleet = await LimitedFleet.start(context, NODES, limits);
        await fleet.stream(MAX_SETTLE_SECONDS, streams);
        const bytes = await fleet.stream(10, streams);
        const total = Object.values(streams).reduce((sum, count) => sum + count, 0);
        for (const [node, count] of Object.entries(streams)) {
          const perStream = sumOf(bytes.map((each) => each[node] ?? 0)) / count;
          const fair = (10 * BYTES_PER_SECOND) / total;
          assert.ok(Math.abs(perStream / fair - 1) <= 0.05, `${node}: ${perStream} of ${fair} bytes`);
        }
      });
    }
  });
}

/** Checks the admitted units, also of the seconds in which the load changes. `maxInSecond` is a part of the limit. */
function assertPrecise(
  phases: readonly Admitted[],
  { limit, maxInSecond }: { readonly limit: number; readonly maxInSecond: number },
): void {
  const tenths = phases.map((phase) => phase.map((each) => sumOf(Object.values(each))));
  const all = tenths.flat();
  const perSecond = windowSums(all, 10).map((sum) => sum / limit);
  assert.ok(Math.max(...perSecond) <= maxInSecond, `${Math.max(...perSecond)} in a second`);
  const perTenSeconds = windowSums(all, 100).map((sum) => sum / (10 * limit));
  const [lowest, highest] = [Math.min(...perTenSeconds), Math.max(...perTenSeconds)];
  assert.ok(lowest >= 0.95 && highest <= 1.05, `${lowest} to ${highest} in 10 s`);
  for (const phase of tenths) {
    const settled = windowSums(phase.slice(10 * MAX_SETTLE_SECONDS), 10).map((sum) => sum / limit);
    assert.ok(Math.min(...settled) >= 0.95, `${Math.min(...settled)} in a second after the share has moved`);
  }
}

/** Returns the sums of all runs of `length` neighbouring numbers. */
function windowSums(numbers: readonly number[], length: number): readonly number[] {
  return numbers.slice(length - 1).map((_, index) => sumOf(numbers.slice(index, index + length)));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
