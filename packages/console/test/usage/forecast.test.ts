import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countersFrom, type UsageRow } from '@weir/model';
import { forecastsFor, readForecastDays } from '../../src/usage/forecast.ts';

const row = (tenant: string, bytes: number): UsageRow => ({
  service: `uid-${tenant}`,
  tenant,
  namespace: tenant,
  name: 'web',
  counters: countersFrom([bytes / 2, bytes / 2, 0, 0]),
});

/** Returns the forecast of each tenant from the bytes of each day. */
async function forecasts(now: string, bytesByDay: Readonly<Record<string, Readonly<Record<string, number>>>>) {
  const time = Date.parse(now);
  const rowsOf = (day: string): UsageRow[] =>
    Object.entries(bytesByDay[day] ?? {}).map(([name, bytes]) => row(name, bytes));
  const month = Object.keys(bytesByDay).flatMap(rowsOf);
  const days = await readForecastDays({ rows: async (day) => rowsOf(day) }, time);
  return Object.fromEntries(forecastsFor(month, days, time));
}

describe('the forecast of a month', () => {
  test('adds the mean of the last seven days for the rest of the month', async () => {
    const usage = Object.fromEntries(
      Array.from({ length: 14 }, (_, index) => [
        `2027-06-${String(index + 1).padStart(2, '0')}`,
        index < 7 ? 500 : 100,
      ]),
    );
    const bytesByDay = Object.fromEntries(Object.entries(usage).map(([day, bytes]) => [day, { shop: bytes }]));
    assert.deepEqual(await forecasts('2027-06-15T00:00:00Z', { ...bytesByDay, '2027-06-15': { shop: 0 } }), {
      shop: 7 * 500 + 7 * 100 + 16 * 100,
    });
  });

  test('counts only days of this month, also in its first week', async () => {
    const bytesByDay = { '2027-06-01': { shop: 100 }, '2027-06-02': { shop: 300 } };
    assert.deepEqual(await forecasts('2027-06-03T00:00:00Z', bytesByDay), { shop: 400 + 200 * 28 });
  });

  test('counts the days of a new tenant since its first usage', async () => {
    const bytesByDay = { '2027-06-10': { old: 100 }, '2027-06-20': { new: 100 } };
    const found = await forecasts('2027-06-21T00:00:00Z', bytesByDay);
    assert.deepEqual(found, { old: 100, new: 100 + 10 * 100 });
  });

  test('is unknown in the first 24 hours of the month, and of a tenant', async () => {
    assert.deepEqual(await forecasts('2027-06-01T23:00:00Z', { '2027-06-01': { shop: 100 } }), {});
    assert.deepEqual(await forecasts('2027-06-20T23:00:00Z', { '2027-06-20': { shop: 100 } }), {});
  });
});
