import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveFrames } from '../../src/client/live-frames.ts';

const FRAME = { at: '2026-01-01T00:00:00.000Z', tenants: [{ name: 'zoë' }], services: [] };
const RATES = `event: rates\nid: 1\ndata: ${JSON.stringify(FRAME)}\n\n`;

test('yields complete frames, whatever the size of the chunks', async () => {
  const stream = Buffer.from(`retry: 1000\n\nevent: history\ndata: {"tenants":[]}\n\n: waiting\n\n${RATES}${RATES}`);
  for (const size of [1, 2, 3, 7, 64, stream.length]) {
    assert.deepEqual(await framesFrom(split(stream, size)), [FRAME, FRAME], `${size} bytes at a time`);
  }
});

test('drops an incomplete frame at the end of the stream', async () => {
  assert.deepEqual(await framesFrom([Buffer.from(RATES.slice(0, -1))]), []);
});

// The test would exceed its timeout if each chunk were joined with all earlier chunks of the line, because this would copy 100 GB.
test('reads a long history event in many chunks in linear time', { timeout: 30_000 }, async () => {
  const history = `event: history\ndata: ${JSON.stringify({ tenants: ['x'.repeat(1_000_000)] })}\n\n`;
  assert.deepEqual(await framesFrom(split(Buffer.from(history + RATES), 5)), [FRAME]);
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

function* split(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}
