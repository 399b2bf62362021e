// How many bytes a stream on system calls reads at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, patternServer } from '@weir/testkit';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener } from './test-listener.ts';

test('limits the bytes of each read, also on a stream that has read before', async () => {
  using listener = await startTestListener(epollTransport);
  const arrival = listener.next();
  await using client = await connectClient({ host: listener.host, port: listener.port });
  const { stream, events } = await arrival;
  await client.send('hello');
  await events.until(() => events.received === 5);
  stream.readStop();
  const limited = new StreamRecorder();
  stream.accept(limited);
  stream.limitReadBytes?.(1_000);
  void client.sendPattern({ bytes: 2_000_000 });
  stream.readStart();
  await limited.until(() => limited.received === 2_000_000);
  const [first, ...others] = limited.chunks.map(({ length }) => length);
  assert.ok((first ?? 0) <= 262_144);
  assert.ok(others.length > 0 && others.every((length) => length <= 1_000));
});

test('reads widely while alone, and narrowly while slow peers have many bytes queued', async () => {
  using listener = await startTestListener(epollTransport);
  await using source = await patternServer({ bytes: 96_000_000 });
  const arrival = listener.next();
  await using client = await connectClient({ host: listener.host, port: listener.port });
  client.pause();
  const { stream: to } = await arrival;
  const sizes = { few: 0, many: 0 };
  const events = new StreamRecorder();
  events.onBytes = (_from, bytes) => {
    // The transport decides the size of a read at the end of the previous read. So the queue may exceed the limit of 32
    // MiB by one wide read of 4 MiB before reads become narrow.
    const queued = to.queuedBytes > 33_554_432 + 4_194_304 ? 'many' : 'few';
    sizes[queued] = Math.max(sizes[queued], bytes.length);
    to.write(bytes);
  };
  const from = epollTransport.connect({ address: source.host, port: source.port }, events);
  await events.until(() => events.hasEnded);
  from.shutdown();
  assert.ok(sizes.few > 262_144, `${sizes.few} bytes`);
  assert.ok(sizes.many > 0 && sizes.many <= 262_144, `${sizes.many} bytes`);
});
