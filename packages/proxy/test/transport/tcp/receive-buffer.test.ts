// The receive buffer of a fast stream from an endpoint.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { patternServer } from '@weir/testkit';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { StreamRecorder } from './stream-recorder.ts';

const RECEIVE_BUFFER_BYTES = 4_194_304;
const maxRequestedBytes = Number(readFileSync('/proc/sys/net/core/rmem_max', 'utf8'));
const skip = maxRequestedBytes < RECEIVE_BUFFER_BYTES / 2 && 'net.core.rmem_max does not allow the buffer';

test('a fast stream from an endpoint has a receive buffer of 4 MiB', { skip }, async () => {
  await using source = await patternServer({ bytes: 200_000_000 });
  const events = new StreamRecorder();
  let buffered = 0;
  events.onBytes = (from) => {
    from.readStop();
    buffered = from.bufferedBytes?.() ?? 0;
    from.readStart();
  };
  epollTransport.connect({ address: source.host, port: source.port }, events).shutdown();
  await events.until(() => events.hasEnded);
  assert.equal(buffered, RECEIVE_BUFFER_BYTES);
});
