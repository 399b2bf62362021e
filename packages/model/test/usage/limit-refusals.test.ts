import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  countersFrom,
  type LimitRefusals,
  limitRefusalsIn,
  type RefusalCounts,
  refusalsToShow,
  type UsageRow,
} from '@weir/model';

const SLOT = { service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web' };

describe('the refusals of a minute', () => {
  const cases: readonly {
    readonly name: string;
    readonly connections?: number;
    readonly requests?: number;
    readonly refused: RefusalCounts;
    readonly shown: readonly (readonly [reason: string, refused: number, accepted: number])[];
  }[] = [
    { name: 'are shown above 1 %', connections: 980, refused: { 'rate-limit': 10 }, shown: [['rate-limit', 10, 980]] },
    { name: 'are not shown at 1 %', connections: 990, refused: { 'rate-limit': 10 }, shown: [] },
    { name: 'are not shown below ten', refused: { 'connection-limit': 9 }, shown: [] },
    { name: 'are shown without an accepted client', refused: { 'client-limit': 10 }, shown: [['client-limit', 10, 0]] },
    { name: 'are not shown if no limit causes them', refused: { 'no-endpoints': 99, 'cut-off': 99 }, shown: [] },
    {
      name: 'are compared with the requests if requests were refused',
      connections: 1,
      requests: 1_000,
      refused: { 'too-many-requests': 11 },
      shown: [['too-many-requests', 11, 989]],
    },
    {
      name: 'are not shown if too few requests were refused, however few the connections',
      connections: 1,
      requests: 1_100,
      refused: { 'too-many-requests': 11 },
      shown: [],
    },
  ];
  for (const { name, connections = 0, requests = 0, refused, shown } of cases) {
    test(name, () => {
      const counters = countersFrom([0, 0, connections, requests], refused);
      const found = limitRefusalsIn([{ ...SLOT, counters }], 7);
      assert.deepEqual(
        found.map((each) => [each.reason, each.refused, each.accepted]),
        shown,
      );
      assert.ok(found.every(({ service, minute }) => service === 'uid' && minute === 7));
    });
  }
});

test('the use of a rate is the mean of the minute, of the Service and of all Services of its tenant', () => {
  const row = (service: string, tenant: string, connections: number, requests: number): UsageRow => ({
    ...SLOT,
    service,
    tenant,
    counters: countersFrom([0, 0, connections, requests], { 'rate-limit': 60, 'too-many-requests': 120 }),
  });
  const rows = [row('uid', 'shop', 600, 720), row('other', 'shop', 300, 420), row('foreign', 'game', 9_000, 9_000)];
  const usedOf = (reason: string): unknown =>
    limitRefusalsIn(rows, 7).find((each) => each.service === 'uid' && each.reason === reason)?.used;
  assert.deepEqual(usedOf('rate-limit'), { tenant: 15, service: 10 });
  assert.deepEqual(usedOf('too-many-requests'), { tenant: 15, service: 10 });
});

test('a Service keeps the figures that it shows until twice as many clients are refused, or for another reason', () => {
  const refusals = (refused: number, over: Partial<LimitRefusals> = {}): LimitRefusals => ({
    service: 'uid',
    minute: 1,
    reason: 'rate-limit',
    refused,
    accepted: 5,
    ...over,
  });
  const first = refusals(100);
  const shown = refusalsToShow(new Map(), [first, refusals(40)]);
  assert.deepEqual([...shown], [['uid', first]]);
  assert.equal(refusalsToShow(shown, [refusals(199), refusals(20)]).get('uid'), first);
  assert.equal(refusalsToShow(shown, [refusals(200)]).get('uid')?.refused, 200);
  const other = refusals(30, { reason: 'connection-limit' });
  assert.equal(refusalsToShow(shown, [other, refusals(20)]).get('uid'), first);
  assert.equal(refusalsToShow(shown, [other]).get('uid'), other);
  assert.equal(refusalsToShow(shown, []).size, 0);
});
