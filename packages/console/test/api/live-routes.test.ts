import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';

test('whoever watches gets the rates of each second', async () => {
  const clock = new ManualClock();
  await using console = await startTestConsole({ clock });
  await using stream = await openLiveReader(console);
  await stream.event('history');
  await console.flushUsage({ receivedBytes: 1_000, sentBytes: 2_000, connections: 4, requests: 0 });
  await clock.advance(1_000);
  const frame = await stream.event('rates');
  assert.deepEqual(frame.tenants, [
    {
      name: 'shop',
      inBitsPerSecond: 8_000,
      outBitsPerSecond: 16_000,
      newConnectionsPerSecond: 4,
      requestsPerSecond: 0,
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

test('who comes later gets the graph of before at once', async () => {
  const clock = new ManualClock();
  await using console = await startTestConsole({ clock });
  await using first = await openLiveReader(console);
  await first.event('history');
  await console.flushUsage({ sentBytes: 125 });
  await clock.advance(1_000);
  await first.event('rates');
  await using second = await openLiveReader(console);
  assert.deepEqual(await second.event('history'), { tenants: [] });
  const { tenants } = await second.event('history');
  assert.deepEqual(
    tenants[0].points.map((point: { outBitsPerSecond: number }) => point.outBitsPerSecond),
    [1_000],
  );
});

test('nobody watches: the ledger is not read', async () => {
  const clock = new ManualClock();
  await using console = await startTestConsole({ clock });
  let reads = 0;
  const { usage } = console.store;
  const rows = usage.rows.bind(usage);
  usage.rows = (...args) => {
    reads += 1;
    return rows(...args);
  };
  await clock.advance(5_000);
  assert.equal(reads, 0);
  const stream = await openLiveReader(console);
  await stream.event('history');
  await clock.advance(1_000);
  await stream.event('rates');
  assert.ok(reads > 0);
  await stream[Symbol.asyncDispose]();
  await clock.advance(20_000);
  const after = reads;
  await clock.advance(20_000);
  assert.equal(reads, after);
});

test('only so many may watch, and the next one is told', async () => {
  await using console = await startTestConsole();
  const streams = await Promise.all(Array.from({ length: 100 }, () => openLiveReader(console)));
  const refused = await console.request('/api/v1/live');
  assert.equal(refused.status, 503);
  assert.equal(refused.json.error.code, 'TooManyWatchers');
  for (const stream of streams) await stream[Symbol.asyncDispose]();
});

interface LiveReader extends AsyncDisposable {
  /** The data of the next event of that name. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
  event(name: string): Promise<any>;
}

async function openLiveReader(console: TestConsole): Promise<LiveReader> {
  const stopping = new AbortController();
  const response = await fetch(new URL('/api/v1/live', console.url), { signal: stopping.signal });
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async event(name) {
      for (;;) {
        const match = new RegExp(`event: ${name}\\n(?:id: .*\\n)?data: (.*)\\n\\n`).exec(text);
        if (match !== null) {
          text = text.slice(match.index + match[0].length);
          return JSON.parse(match[1] ?? '');
        }
        const read = await reader?.read();
        assert.equal(read?.done, false, `the stream ended before ${name}`);
        text += read?.value;
      }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await reader?.cancel().catch(() => {});
    },
  };
}
