import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Heartbeat, nextRateWindow, type RateWindow, rateIn, reportingProxies, ZERO_COUNTERS } from '@weir/model';

/** Returns a reading at a second: the sent bytes of each minute. */
const reading = (
  second: number,
  sentBytes: Readonly<Record<number, number>>,
  proxies: readonly string[] = ['a/1'],
) => ({
  at: second * 1000,
  minutes: new Map(
    Object.entries(sentBytes).map(([minute, sent]) => [Number(minute), { ...ZERO_COUNTERS, sentBytes: sent }]),
  ),
  proxies: new Set(proxies),
});

const windowOf = (readings: readonly (ReturnType<typeof reading> | undefined)[]): RateWindow | undefined =>
  readings.reduce<RateWindow | undefined>(nextRateWindow, undefined);

const rateOf = (...readings: (ReturnType<typeof reading> | undefined)[]): number | undefined =>
  rateIn(windowOf(readings), 'outBitsPerSecond');

describe('a rate', () => {
  test('is the mean over up to three intervals, across the change of the minute', () => {
    assert.equal(rateOf(reading(0, { 9: 0, 10: 500 })), undefined);
    assert.equal(rateOf(reading(0, { 9: 0, 10: 500 }), reading(5, { 9: 0, 10: 1000 })), 800);
    const overMinutes = [
      reading(50, { 9: 0, 10: 500 }),
      reading(55, { 9: 0, 10: 1000 }),
      reading(60, { 10: 1200, 11: 300 }),
    ];
    assert.equal(rateOf(...overMinutes), 800);
    const many = Array.from({ length: 9 }, (_, index) =>
      reading(index * 5, { 9: 0, 10: index < 5 ? 0 : (index - 5) * 500 }),
    );
    assert.equal(rateOf(...many), 800);
  });

  const gaps: readonly {
    readonly name: string;
    readonly readings: readonly (ReturnType<typeof reading> | undefined)[];
  }[] = [
    { name: 'a missing reading', readings: [reading(0, { 9: 0, 10: 1 }), undefined, reading(10, { 9: 0, 10: 99 })] },
    { name: 'half a minute without a reading', readings: [reading(0, { 9: 0, 10: 1 }), reading(30, { 9: 0, 10: 99 })] },
    { name: 'a ledger that has lost usage', readings: [reading(0, { 9: 0, 10: 9 }), reading(5, { 9: 0, 10: 2 })] },
    {
      name: 'a proxy that joins',
      readings: [reading(0, { 9: 0, 10: 1 }), reading(5, { 9: 0, 10: 99 }, ['a/1', 'b/4'])],
    },
  ];
  for (const { name, readings } of gaps)
    test(`is unknown after ${name}`, () => assert.equal(rateOf(...readings), undefined));

  test('leaves out usage of earlier minutes that a proxy reports after an outage', () => {
    // The ledger adds such usage to minutes that no reading contains.
    assert.equal(rateOf(reading(0, { 9: 7, 10: 1 }), reading(5, { 9: 7, 10: 1 })), 0);
  });

  test('goes on when a proxy ends', () => {
    const readings = [reading(0, { 9: 0, 10: 0 }, ['a/1', 'b/1']), reading(5, { 9: 0, 10: 500 }, ['a/1'])];
    assert.equal(rateOf(...readings), 800);
  });
});

describe('the proxies of a tenant', () => {
  const heartbeat = (node: string, change: Partial<Heartbeat>): Heartbeat =>
    ({ node, life: 1, sentAt: 10_000, usageReportedAt: 9_000, ...change }) as Heartbeat;

  test('are known if the ledger has the usage of all of them', () => {
    assert.deepEqual(
      reportingProxies([heartbeat('a', {}), heartbeat('b', { life: 3 })], new Set(['a', 'b'])),
      new Set(['a/1', 'b/3']),
    );
  });

  test('are unknown if one has not reported for more than two intervals, or cannot say when', () => {
    const nodes = new Set(['a', 'b']);
    assert.equal(reportingProxies([heartbeat('a', {}), heartbeat('b', { usageReportedAt: 6_000 })], nodes), undefined);
    const { usageReportedAt: _, ...older } = heartbeat('b', {});
    assert.equal(reportingProxies([heartbeat('a', {}), older], nodes), undefined);
  });

  test('do not include proxies of other nodes, which may be late', () => {
    assert.deepEqual(
      reportingProxies([heartbeat('a', {}), heartbeat('z', { usageReportedAt: 0 })], new Set(['a'])),
      new Set(['a/1']),
    );
  });
});
