import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, patternServer } from '@weir/testkit';
import { rawTransport } from '../../../src/transport/tcp/raw-transport.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener } from './test-listener.ts';
import { transportContract } from './transport-contract.ts';

transportContract('bare', rawTransport);

test('a stream that may read so much at a time is told no more at once, also when it read before', async () => {
  using door = await startTestListener(rawTransport);
  const arrival = door.next();
  await using client = await connectClient({ host: door.host, port: door.port });
  const { stream, events } = await arrival;
  await client.send('hello');
  await events.until(() => events.received === 5);
  stream.readStop();
  const paced = new StreamRecorder();
  stream.accept(paced);
  stream.limitReadBytes?.(1_000);
  void client.sendPattern({ bytes: 2_000_000 });
  stream.readStart();
  await paced.until(() => paced.received === 2_000_000);
  const [first, ...others] = paced.chunks.map(({ length }) => length);
  assert.ok((first ?? 0) <= 262_144);
  assert.ok(others.length > 0 && others.every((length) => length <= 1_000));
});

test('streams read widely while they are alone, and narrowly as soon as slow peers keep much waiting', async () => {
  using door = await startTestListener(rawTransport);
  await using source = await patternServer({ bytes: 96_000_000 });
  const arrival = door.next();
  await using client = await connectClient({ host: door.host, port: door.port });
  client.pause();
  const { stream: to } = await arrival;
  const sizes = { little: 0, much: 0 };
  const events = new StreamRecorder();
  events.onBytes = (_from, bytes) => {
    // The size of a read is decided when the one before it is over.
    const waits = to.queuedBytes > 33_554_432 + 4_194_304 ? 'much' : 'little';
    sizes[waits] = Math.max(sizes[waits], bytes.length);
    to.write(bytes);
  };
  rawTransport.connect({ address: source.host, port: source.port }, events);
  await events.until(() => events.hasEnded);
  assert.ok(sizes.little > 262_144, `${sizes.little} bytes`);
  assert.ok(sizes.much > 0 && sizes.much <= 262_144, `${sizes.much} bytes`);
});
