import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { connectClient } from '@weir/testkit';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { shrinkSocketBuffers } from '../../fixtures/socket-buffers.ts';
import { testManySlowReaders } from './slow-readers.ts';

const READERS = 50;
/** The sockets of a relay: of the source, of the client, and the two of the relay itself. */
const SOCKETS_PER_READER = 4;
const BYTES = 2_000_000;

test('writes that the kernel takes in small random parts arrive complete and in order', async () => {
  await testManySlowReaders(
    { name: 'epoll', transport: epollTransport, connect: connectClient },
    {
      readers: READERS,
      bytes: BYTES,
      nextStep: () => randomInt(1, 200_000),
      beforeReading: () => assert.ok(shrinkSocketBuffers() >= READERS * SOCKETS_PER_READER),
    },
  );
});
