import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minuteOf } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { readUsageSeries, seriesPlanFor } from '../../src/usage/usage-series.ts';
import { seededStore } from '../fixtures/seeded-store.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

const NOW = Date.parse('2028-03-01T18:43:15Z');
const HOUR = 3_600_000;

test('returns the points of a tenant and of a Service, with steps without usage', async () => {
  const clock = new ManualClock(NOW - 2 * HOUR);
  const seeded = await seededStore(clock);
  await seeded.flushUsage({ sentBytes: 500, connections: 2, refused: { 'rate-limit': 3 } });
  await clock.advance(2 * HOUR);
  await seeded.flushUsage({ sentBytes: 700, connections: 2, refused: { 'rate-limit': 3 } });
  await using console = await startTestConsole({ seeded, clock });
  const zero = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };
  const points = [
    { at: '2028-03-01T15:00:00Z', ...zero },
    { at: '2028-03-01T16:00:00Z', ...zero, sentBytes: 500, connections: 2, refused: { 'rate-limit': 3 } },
    { at: '2028-03-01T17:00:00Z', ...zero },
    { at: '2028-03-01T18:00:00Z', ...zero, sentBytes: 200 },
  ];
  const itemsOf = async (query: string): Promise<unknown> =>
    (await console.request(`/api/v1/usage/series?${query}`)).json.items;
  const tenant = { tenant: 'shop', step: '1h', points };
  assert.deepEqual(await itemsOf('tenant=shop&since=3h'), [tenant]);
  assert.deepEqual(await itemsOf('since=3h&step=1h'), [tenant]);
  assert.deepEqual(await itemsOf('namespace=shop&name=web&since=2028-03-01T15:10:00Z'), [
    { tenant: 'shop', namespace: 'shop', name: 'web', step: '1h', points },
  ]);
  assert.deepEqual(await itemsOf('tenant=shop&since=3h&until=2028-03-01T17:00:00Z'), [
    { ...tenant, points: points.slice(0, 2) },
  ]);
  const days = await itemsOf('tenant=shop&since=2028-02-29&step=1d');
  assert.deepEqual(days, [
    {
      tenant: 'shop',
      step: '1d',
      points: [
        { at: '2028-02-29T00:00:00Z', ...zero },
        { at: '2028-03-01T00:00:00Z', ...zero, sentBytes: 700, connections: 2, refused: { 'rate-limit': 3 } },
      ],
    },
  ]);
});

test('adds up the usage of all Services that had a name, also of months in between', async () => {
  const clock = new ManualClock(Date.parse('2028-01-10T12:00:00Z'));
  const seeded = await seededStore(clock);
  await clock.advance(35 * 24 * HOUR);
  const counters = { receivedBytes: 0, sentBytes: 300, connections: 1, requests: 0 };
  const points = [{ minute: minuteOf(clock.now()), counters }];
  const slot = { service: 'uid-earlier', tenant: 'shop', namespace: 'shop', name: 'web', points };
  await seeded.store.usage.flush({ node: 'a', life: 1, slots: [slot] });
  await clock.advance(20 * 24 * HOUR);
  await seeded.flushUsage({ sentBytes: 200 });
  await using console = await startTestConsole({ seeded, clock });
  const { json } = await console.request('/api/v1/usage/series?namespace=shop&name=web&since=2028-01-10&step=1d');
  const sent = json.items[0].points.map((point: { sentBytes: number }) => point.sentBytes);
  assert.deepEqual(
    sent.filter((bytes: number) => bytes > 0),
    [300, 200],
  );
});

test('says which steps, times and names a series may have', async () => {
  const clock = new ManualClock(NOW);
  await using console = await startTestConsole({ seeded: await seededStore(clock), clock });
  for (const [query, status, message] of [
    ['step=10m', 400, /"step" is "10m"; use one of 1m, 5m, 15m, 1h, 6h, 1d/],
    ['since=yesterday', 400, /"since" is "yesterday"; use a duration before now such as 30m, 12h or 7d/],
    ['until=2028-13-01', 400, /"until" is "2028-13-01"; use a duration/],
    ['since=2026-02-30', 400, /"since" is "2026-02-30"; use a duration/],
    ['since=7d&step=1m', 400, /points for a step of 1m are kept for 2d; use step 1h/],
    ['since=2d&until=3d', 400, /"since" must be in the past and before "until"/],
    ['namespace=shop', 400, /use "namespace" and "name" for one Service, or only "tenant"/],
    ['tenant=shop&namespace=shop&name=web', 400, /use "namespace" and "name" for one Service, or only "tenant"/],
    ['tenant=nobody', 404, /no tenant "nobody"/],
    ['namespace=shop&name=nothing', 404, /no Service "shop\/nothing"/],
  ] as const) {
    const response = await console.request(`/api/v1/usage/series?${query}`);
    assert.equal(response.status, status, query);
    assert.match(response.json.error.message, message);
  }
});

test('refuses a response with too many points and names what to change', async () => {
  const { store } = await seededStore(new ManualClock(NOW));
  const plan = seriesPlanFor({ since: '2d', step: '1m' }, NOW);
  const subjects = Array.from({ length: 18 }, (_, index) => ({ tenant: `t${index}` }));
  await assert.rejects(readUsageSeries(store.usage, subjects, { plan, step: '1m' }), {
    code: 'InvalidRequest',
    message: /^2881 points for each of 18 tenants are more than 50000 points, .*name a tenant, use a longer step/,
  });
  assert.equal((await readUsageSeries(store.usage, subjects.slice(1), { plan, step: '1m' })).length, 17);
});
