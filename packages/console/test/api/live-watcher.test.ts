import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { writeWithBackpressure } from '../../src/api/live-watcher.ts';

test('stops writing while the client does not read, and continues when the client reads again', async () => {
  const stream = new PassThrough({ highWaterMark: 100 });
  const { texts, made } = counted(1_000);
  const sending = writeWithBackpressure(stream, texts);
  await new Promise(setImmediate);
  assert.ok(made() < 50, `${made()} texts`);
  let read = 0;
  stream.on('data', (data: Buffer) => {
    read += data.length;
  });
  await sending;
  stream.end();
  await once(stream, 'end');
  assert.equal(read, 10_000);
});

test('takes no more texts after the stream was destroyed or ended', async () => {
  for (const end of ['destroy', 'end'] as const) {
    const stream = new PassThrough({ highWaterMark: 100 });
    const { texts, made } = counted(1_000);
    const sending = writeWithBackpressure(stream, texts);
    await new Promise(setImmediate);
    const before = made();
    stream[end]();
    stream.resume();
    await sending;
    assert.ok(made() <= before + 1, `${made()} texts`);
  }
});

/** Returns `count` texts of ten bytes. `made` returns how many of them have been read. */
function counted(count: number): { readonly texts: Iterable<string>; made(): number } {
  let made = 0;
  function* texts(): Generator<string> {
    for (; made < count; made += 1) yield '0123456789';
  }
  return { texts: texts(), made: () => made };
}
