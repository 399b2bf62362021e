import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Counters, countersFrom, type UsageRow } from '@weir/model';
import {
  addSample,
  currentRatesFor,
  EMPTY_RATE_HISTORY,
  MAX_RATE_FRAMES,
  type RateHistory,
  ratePointsFor,
  type UsageSample,
  ZERO_RATE,
} from '../../src/rates/rate-history.ts';

const START = 1_000_000;

test('computes the rate of a second from two samples', () => {
  const history = historyOf(
    sample(0, row('web', { receivedBytes: 100 })),
    sample(1_000, row('web', { receivedBytes: 1_100 })),
  );
  const rate = currentRatesFor(history)?.tenants.get('shop');
  assert.equal(rate?.inBitsPerSecond, 8_000);
  assert.equal(rate?.outBitsPerSecond, 0);
});

test('has no rate after one sample', () => {
  assert.equal(currentRatesFor(historyOf(sample(0, row('web', { sentBytes: 5 })))), undefined);
});

test('averages rates over three seconds, so that two flushes in one sample cause no peak', () => {
  const sent = [0, 2_000, 2_000, 3_000];
  const history = historyOf(...sent.map((sentBytes, index) => sample(index * 1_000, row('web', { sentBytes }))));
  assert.equal(currentRatesFor(history)?.services.get('web')?.outBitsPerSecond, 8_000);
});

test('sums the rates of the Services of each tenant', () => {
  const rowsOf = (bytes: number): UsageRow[] => [
    row('web', { sentBytes: bytes }),
    row('api', { sentBytes: bytes }),
    { ...row('game', { sentBytes: 5 * bytes }), tenant: 'game' },
  ];
  const history = historyOf(sample(0, ...rowsOf(0)), sample(1_000, ...rowsOf(1_000)));
  const rates = currentRatesFor(history);
  assert.equal(rates?.tenants.get('shop')?.outBitsPerSecond, 16_000);
  assert.equal(rates?.tenants.get('game')?.outBitsPerSecond, 40_000);
  assert.equal(rates?.services.get('api')?.outBitsPerSecond, 8_000);
});

test('counts no traffic when a wiped ledger is restored', () => {
  const full = row('web', { sentBytes: 1_000_000 });
  const history = historyOf(sample(0, full), sample(1_000), sample(2_000, row('web', { sentBytes: 1_000_050 })));
  assert.deepEqual(
    ratePointsFor(history, { kind: 'tenant', id: 'shop' }).map((point) => point.outBitsPerSecond),
    [0, 400],
  );
});

test('counts from zero in a new month', () => {
  const before = sample(0, row('web', { sentBytes: 1_000_000 }));
  const after = { ...sample(1_000, row('web', { sentBytes: 125 })), month: '1970-02' };
  assert.equal(currentRatesFor(historyOf(before, after))?.services.get('web')?.outBitsPerSecond, 1_000);
});

test('shows the requests per second, and those with an answer of the class 5xx', () => {
  const requests = (count: number, errors: number): UsageSample['rows'][number] =>
    row('web', countersFrom([0, 0, 0, count, count - errors, 0, 0, errors, 0]));
  const history = historyOf(sample(0, requests(10, 5)), sample(1_000, requests(14, 6)));
  const { requestsPerSecond, serverErrorsPerSecond } = currentRatesFor(history)?.services.get('web') ?? ZERO_RATE;
  assert.deepEqual([requestsPerSecond, serverErrorsPerSecond], [4, 1]);
});

test('shows refused clients per second by reason, and none without refusals', () => {
  const refused = (count: number): UsageSample['rows'][number] =>
    row('web', { refused: { 'rate-limit': count, 'no-endpoints': 7 } });
  const history = historyOf(sample(0, refused(10)), sample(1_000, refused(13)));
  assert.deepEqual(currentRatesFor(history)?.services.get('web')?.refusedPerSecond, { 'rate-limit': 3 });
  const later = addSample(
    history,
    sample(5_000, { ...refused(13), counters: { ...refused(13).counters, sentBytes: 1 } }),
  );
  assert.equal(ratePointsFor(later, { kind: 'service', id: 'web' }).at(-1)?.refusedPerSecond, undefined);
});

test('adds no point after a long gap between two samples', () => {
  const history = historyOf(
    sample(0, row('web', { sentBytes: 0 })),
    sample(60_000, row('web', { sentBytes: 1_000_000 })),
    sample(61_000, row('web', { sentBytes: 1_000_125 })),
  );
  assert.deepEqual(
    ratePointsFor(history, { kind: 'service', id: 'web' }).map((point) => point.outBitsPerSecond),
    [1_000],
  );
});

test('keeps five minutes of frames, without entries for idle Services', () => {
  let history: RateHistory = EMPTY_RATE_HISTORY;
  for (let second = 0; second < MAX_RATE_FRAMES * 2; second += 1) {
    history = addSample(history, sample(second * 1_000, row('web', { sentBytes: 7 })));
  }
  assert.equal(history.frames.length, MAX_RATE_FRAMES);
  assert.equal(history.frames.at(-1)?.services.size, 0);
});

test('drops points in the future after the wall clock was set back', () => {
  const history = historyOf(sample(0), sample(1_000), sample(-500_000), sample(-499_000));
  assert.deepEqual(
    history.frames.map((frame) => frame.at),
    [START - 499_000],
  );
});

function historyOf(...samples: readonly UsageSample[]): RateHistory {
  return samples.reduce(addSample, EMPTY_RATE_HISTORY);
}

function sample(at: number, ...rows: readonly UsageRow[]): UsageSample {
  return { at: START + at, month: '1970-01', rows };
}

function row(service: string, counters: Partial<Counters>): UsageRow {
  return {
    service,
    tenant: 'shop',
    namespace: 'shop',
    name: service,
    counters: { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0, ...counters },
  };
}
