import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  acknowledgeReport,
  addCounters,
  CODE_CLASSES,
  type Counters,
  counterIncrease,
  countersFrom,
  decodeJournal,
  EMPTY_JOURNAL,
  encodeJournal,
  isSlotAcknowledged,
  minuteOf,
  periodsOf,
  recordUsage,
  type UsageReport,
  usageReportFor,
  ZERO_COUNTERS,
} from '@weir/model';
import fc from 'fast-check';

const SLOT = { key: 'uid|shop', service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' };
const LIFE = { node: 'n1', life: 1 };

type Step =
  | { readonly kind: 'relay'; readonly bytes: number; readonly requests: readonly number[] }
  | { readonly kind: 'refuse'; readonly reason: string }
  | { readonly kind: 'minute' }
  | { readonly kind: 'send'; readonly fate: 'answered' | 'answer lost' | 'lost' | 'delayed' }
  | { readonly kind: 'restart' };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('relay' as const),
      bytes: fc.nat(1000),
      requests: fc.array(fc.nat(3), { minLength: CODE_CLASSES.length, maxLength: CODE_CLASSES.length }),
    }),
    fc.record({
      kind: fc.constant('refuse' as const),
      reason: fc.constantFrom('rate-limit', 'no-endpoints', 'toString'),
    }),
    fc.record({ kind: fc.constant('minute' as const) }),
    fc.record({
      kind: fc.constant('send' as const),
      fate: fc.constantFrom('answered' as const, 'answer lost' as const, 'lost' as const, 'delayed' as const),
    }),
    fc.record({ kind: fc.constant('restart' as const) }),
  ),
  { maxLength: 40 },
);

/**
 * Returns a reference implementation of the ledger. For each point of a report, the ledger adds the increase over the last known counters
 * to the minute of the point.
 */
function createLedger(): {
  take: (report: UsageReport) => void;
  total: () => Counters;
  byMinute: Map<number, Counters>;
} {
  const byMinute = new Map<number, Counters>();
  let seen = ZERO_COUNTERS;
  return {
    byMinute,
    take(report) {
      for (const { minute, counters } of report.slots.flatMap((slot) => slot.points)) {
        const more = counterIncrease(seen, counters);
        byMinute.set(minute, addCounters(byMinute.get(minute) ?? ZERO_COUNTERS, more));
        seen = addCounters(seen, more);
      }
    },
    total: () => [...byMinute.values()].reduce(addCounters, ZERO_COUNTERS),
  };
}

test('the ledger equals the relayed traffic although reports are lost, repeated or late and the journal is restored from disk', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const ledger = createLedger();
      const late: UsageReport[] = [];
      let journal = EMPTY_JOURNAL;
      let counters = ZERO_COUNTERS;
      let minute = 1000;
      const send = (fate: string): void => {
        journal = recordUsage(journal, [{ ...SLOT, counters }], minute);
        const report = usageReportFor(journal, LIFE);
        if (report === undefined || fate === 'lost') return;
        if (fate === 'delayed') late.push(report);
        else ledger.take(report);
        if (fate === 'answered') journal = acknowledgeReport(journal, report);
      };
      for (const step of history) {
        if (step.kind === 'relay')
          counters = addCounters(counters, countersFrom([step.bytes, 0, 1, sumOf(step.requests), ...step.requests]));
        else if (step.kind === 'refuse')
          counters = addCounters(counters, { ...ZERO_COUNTERS, refused: { [step.reason]: 1 } });
        else if (step.kind === 'minute') minute += 1;
        else if (step.kind === 'send') send(step.fate);
        else journal = decodeJournal(encodeJournal(journal)) ?? assert.fail('the journal is not readable');
      }
      for (const report of late) ledger.take(report);
      send('answered');
      assert.deepEqual(ledger.total(), counters);
      assert.equal(sumOf(Object.values(counters.requestsByCodeClass ?? {})), counters.requests);
      assert.equal(usageReportFor(journal, LIFE), undefined);
      assert.ok(isSlotAcknowledged(journal, SLOT));
    }),
  );
});

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

test('a journal without code classes keeps its requests, and later requests are counted by code class', () => {
  const old = { receivedBytes: 7, sentBytes: 0, connections: 1, requests: 5 };
  const text = JSON.stringify({
    version: 1,
    slots: [{ ...SLOT, acknowledged: old, points: [{ minute: 1, counters: old }] }],
  });
  const journal = decodeJournal(text) ?? assert.fail('the journal is not readable');
  assert.deepEqual(usageReportFor(journal, LIFE)?.slots[0]?.points, [{ minute: 1, counters: old }]);
  const ledger = createLedger();
  ledger.take(usageReportFor(journal, LIFE) ?? assert.fail('nothing to report'));
  const counters = countersFrom([7, 0, 1, 8, 2, 0, 0, 1, 0]);
  ledger.take(
    usageReportFor(recordUsage(journal, [{ ...SLOT, counters }], 2), LIFE) ?? assert.fail('nothing to report'),
  );
  assert.deepEqual(ledger.total(), {
    ...old,
    requests: 8,
    requestsByCodeClass: { '2xx': 2, '3xx': 0, '4xx': 0, '5xx': 1, none: 0 },
  });
});

test('rejects a journal with damaged code classes', () => {
  const counters = { ...ZERO_COUNTERS, requests: 1, requestsByCodeClass: { '2xx': 1 } };
  const text = JSON.stringify({ version: 1, slots: [{ ...SLOT, acknowledged: counters, points: [] }] });
  assert.equal(decodeJournal(text), undefined);
});

test('rejects a journal with damaged refusals', () => {
  const text = (refused: unknown): string => {
    const acknowledged = { ...ZERO_COUNTERS, refused };
    return JSON.stringify({ version: 1, slots: [{ ...SLOT, acknowledged, points: [] }] });
  };
  assert.notEqual(decodeJournal(text({ 'rate-limit': 1 })), undefined);
  assert.equal(decodeJournal(text({ 'rate-limit': -1 })), undefined);
  assert.equal(decodeJournal(text([1])), undefined);
});

test('usage that is reported after an outage counts for the minutes in which it occurred', () => {
  const ledger = createLedger();
  let journal = EMPTY_JOURNAL;
  for (const [minute, receivedBytes] of [
    [1, 10],
    [2, 30],
    [2, 35],
    [3, 40],
  ] as const) {
    journal = recordUsage(journal, [{ ...SLOT, counters: { ...ZERO_COUNTERS, receivedBytes } }], minute);
  }
  ledger.take(usageReportFor(journal, LIFE) ?? assert.fail('nothing to report'));
  assert.deepEqual(
    [...ledger.byMinute].map(([minute, { receivedBytes }]) => [minute, receivedBytes]),
    [
      [1, 10],
      [2, 25],
      [3, 5],
    ],
  );
});

test('the journal stays bounded during an outage of 10 days, and keeps the usage of each day', () => {
  const ledger = createLedger();
  const days = 10;
  const start = 20_000 * 1440;
  let journal = EMPTY_JOURNAL;
  for (let minute = 0; minute < days * 1440; minute++) {
    journal = recordUsage(
      journal,
      [{ ...SLOT, counters: { ...ZERO_COUNTERS, sentBytes: minute + 1 } }],
      start + minute,
    );
  }
  const report = usageReportFor(journal, LIFE) ?? assert.fail('nothing to report');
  assert.ok((report.slots[0]?.points.length ?? 0) < 3_050, `${report.slots[0]?.points.length} points`);
  ledger.take(report);
  const byDay = new Map<number, number>();
  for (const [minute, { sentBytes }] of ledger.byMinute) {
    const day = Math.floor(minute / 1440);
    byDay.set(day, (byDay.get(day) ?? 0) + sentBytes);
  }
  assert.deepEqual(
    [...byDay.values()],
    Array.from({ length: days }, () => 1440),
  );
});

test('the journal keeps each minute of the last two days for few Services, and of the last two hours for many', () => {
  const start = 20_000 * 1440;
  for (const [slots, kept] of [
    [69, 2_880],
    [1_000, 200],
    [10_000, 120],
  ] as const) {
    const readings = Array.from({ length: slots }, (_, index) => ({
      ...SLOT,
      key: `u${index}|shop`,
      service: `u${index}`,
      counters: { ...ZERO_COUNTERS, connections: 1 },
    }));
    let journal = recordUsage(EMPTY_JOURNAL, readings, start);
    const last = start + kept + 60;
    for (let minute = start + 1; minute <= last; minute += 1)
      journal = recordUsage(
        journal,
        readings
          .slice(0, 1)
          .map((each) => ({ ...each, counters: { ...ZERO_COUNTERS, connections: minute - start + 1 } })),
        minute,
      );
    const points = usageReportFor(journal, LIFE)?.slots[0]?.points ?? [];
    const minutes = points.map(({ minute }) => minute).filter((minute) => minute > last - kept);
    assert.deepEqual(
      minutes,
      Array.from({ length: kept }, (_, index) => last - kept + 1 + index),
    );
    assert.ok(points.length <= kept + 3);
  }
});

test('rejects a damaged journal', () => {
  assert.equal(decodeJournal('{"version":1,"slots":[{"service":"x"}]}'), undefined);
  assert.equal(decodeJournal('{"version":1,"slo'), undefined);
});

test('periods follow the calendar in UTC', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(2199, 0, 1) }), (now) => {
      const text = new Date(now).toISOString();
      assert.deepEqual(periodsOf(minuteOf(now)), {
        minute: text.slice(0, 16),
        hour: text.slice(0, 13),
        day: text.slice(0, 10),
        month: text.slice(0, 7),
      });
    }),
  );
});
