import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveFrames } from '../../src/client/live-frames.ts';

const FRAME = { at: '2026-01-01T00:00:00.000Z', tenants: [{ name: 'zoë' }], services: [] };
const RATES = `event: rates\nid: 1\ndata: ${JSON.stringify(FRAME)}\n\n`;

test('frames come whole, however the stream is cut, and at once', async () => {
  const stream = Buffer.from(`retry: 1000\n\nevent: history\ndata: {"tenants":[]}\n\n: waiting\n\n${RATES}${RATES}`);
  for (const size of [1, 2, 3, 7, 64, stream.length]) {
    assert.deepEqual(await framesFrom(cut(stream, size)), [FRAME, FRAME], `${size} bytes at a time`);
  }
});

test('what is not yet whole is not shown', async () => {
  assert.deepEqual(await framesFrom([Buffer.from(RATES.slice(0, -1))]), []);
});

// Read again each time it would be 100 GB; once, it is done long before the limit.
test('a long past in many small pieces is not read again for each of them', { timeout: 30_000 }, async () => {
  const past = `event: history\ndata: ${JSON.stringify({ tenants: ['x'.repeat(1_000_000)] })}\n\n`;
  assert.deepEqual(await framesFrom(cut(Buffer.from(past + RATES), 5)), [FRAME]);
});

async function framesFrom(chunks: Iterable<Uint8Array>): Promise<unknown[]> {
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  const client = { stream: async () => stream() };
  const frames: unknown[] = [];
  for await (const frame of liveFrames(client, new AbortController().signal)) frames.push(frame);
  return frames;
}

function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
