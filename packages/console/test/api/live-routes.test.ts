import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { openLiveStream } from '../fixtures/live-stream.ts';
import { SHOP_ENTRIES, seededStore } from '../fixtures/seeded-store.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

test('sends the rates of each second', async () => {
  const clock = new ManualClock();
  await using console = await startTestConsole({ clock });
  await using stream = await openLiveStream(console);
  await stream.nextEvent('history');
  await console.flushUsage({ receivedBytes: 1_000, sentBytes: 2_000, connections: 4, requests: 0 });
  await clock.advance(1_000);
  const frame = await stream.nextEvent('rates');
  assert.deepEqual(frame.tenants, [
    {
      name: 'shop',
      inBitsPerSecond: 8_000,
      outBitsPerSecond: 16_000,
      newConnectionsPerSecond: 4,
      requestsPerSecond: 0,
      serverErrorsPerSecond: 0,
    },
  ]);
  assert.deepEqual(
    frame.services.map((service: { name: string; outBitsPerSecond: number }) => [
      service.name,
      service.outBitsPerSecond,
    ]),
    [
      ['extra', 0],
      ['web', 16_000],
    ],
  );
});

test('sends the history at once to a watcher that connects later', async () => {
  const clock = new ManualClock();
  await using console = await startTestConsole({ clock });
  await using first = await openLiveStream(console);
  await first.nextEvent('history');
  await console.flushUsage({ sentBytes: 125 });
  await clock.advance(1_000);
  await first.nextEvent('rates');
  await using second = await openLiveStream(console);
  assert.deepEqual(await second.nextEvent('history'), { tenants: [] });
  const { tenants } = await second.nextEvent('history');
  assert.deepEqual(
    tenants[0].points.map((point: { outBitsPerSecond: number }) => point.outBitsPerSecond),
    [1_000],
  );
});

test('reads only complete minutes of the ledger without watchers, if no tenant has a limit of traffic', async () => {
  const clock = new ManualClock();
  const entries = SHOP_ENTRIES.map((entry) => (entry.kind === 'tenant' ? { ...entry, limits: {} } : entry));
  await using console = await startTestConsole({ clock, seeded: await seededStore(clock, entries) });
  let reads = 0;
  const { usage } = console.store;
  const rows = usage.rows.bind(usage);
  usage.rows = (period, ...args) => {
    if (period.length < '2026-11-23T16:05'.length) reads += 1;
    return rows(period, ...args);
  };
  await clock.advance(5_000);
  assert.equal(reads, 0);
  const stream = await openLiveStream(console);
  await stream.nextEvent('history');
  await clock.advance(1_000);
  await stream.nextEvent('rates');
  assert.ok(reads > 0);
  await stream[Symbol.asyncDispose]();
  await clock.advance(20_000);
  const readsBefore = reads;
  await clock.advance(20_000);
  assert.equal(reads, readsBefore);
});

test('refuses the 101st watcher', async () => {
  await using console = await startTestConsole();
  const streams = await Promise.all(Array.from({ length: 100 }, () => openLiveStream(console)));
  const refused = await console.request('/api/v1/live');
  assert.equal(refused.status, 503);
  assert.equal(refused.json.error.code, 'TooManyWatchers');
  for (const stream of streams) await stream[Symbol.asyncDispose]();
});
