import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ZERO_COUNTERS } from '@weir/model';
import { liveHistoriesFor } from '../../src/api/live-events.ts';
import { addSample, EMPTY_RATE_HISTORY, type RateHistory } from '../../src/rates/rate-history.ts';

test('returns one item of two minutes per tenant with traffic in that time', () => {
  const history = secondsOf(200, { busy: () => true, earlier: (second) => second < 50, resting: () => false });
  const items = [...liveHistoriesFor(history, ['busy', 'earlier', 'resting', 'unknown'])];
  assert.deepEqual(
    items.map(({ tenants }) => tenants.map(({ name, points }) => [name, points.length])),
    [[['busy', 120]]],
  );
  assert.deepEqual(items[0]?.tenants[0]?.points.at(-1), {
    at: 200_000,
    inBitsPerSecond: 8_000,
    outBitsPerSecond: 0,
    newConnectionsPerSecond: 0,
    requestsPerSecond: 0,
    serverErrorsPerSecond: 0,
  });
});

function secondsOf(seconds: number, moves: Readonly<Record<string, (second: number) => boolean>>): RateHistory {
  const totals = new Map(Object.keys(moves).map((tenant) => [tenant, 0]));
  let history = EMPTY_RATE_HISTORY;
  for (let second = 0; second <= seconds; second += 1) {
    const rows = Object.entries(moves).map(([tenant, isMoving]) => {
      const receivedBytes = (totals.get(tenant) ?? 0) + (isMoving(second) ? 1_000 : 0);
      totals.set(tenant, receivedBytes);
      return {
        service: `of-${tenant}`,
        tenant,
        namespace: 'n',
        name: 's',
        counters: { ...ZERO_COUNTERS, receivedBytes },
      };
    });
    history = addSample(history, { at: second * 1_000, month: '1970-01', rows });
  }
  return history;
}
