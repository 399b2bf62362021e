import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { echoServer, eventually } from '@weir/testkit';
import { closeAbandonedDescriptors, createDescriptorMemory } from '../../src/transport/choose-transport.ts';
import { endpointOf } from '../fixtures/services.ts';

const CONNECTIONS = 200;
const MESSAGE = Buffer.alloc(10_000, 'x');
/** How many bytes all clients have received together when the worker is terminated. */
const MIN_BYTES = CONNECTIONS * 50_000;
/** Of each connection two sockets, the listen socket and the epoll instance. */
const MIN_ABANDONED = 2 * CONNECTIONS + 2;
/** Ends the test soon if a connection stays open. */
const MAX_SILENCE_MS = 10_000;

test('a worker terminated in the middle of traffic leaves no connection, descriptor or port behind', async () => {
  await using backend = await echoServer();
  const before = readdirSync('/proc/self/fd').length;
  const descriptors = createDescriptorMemory();
  const workerData = { descriptors, endpoint: endpointOf(backend) };
  const worker = new Worker(new URL('./relaying-worker.ts', import.meta.url), { workerData });
  const [{ host, port }] = (await once(worker, 'message')) as [{ host: string; port: number }];
  const { promise: isBusy, resolve: resolveBusy } = Promise.withResolvers<void>();
  let received = 0;
  const clients = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect({ host, port, noDelay: true });
    socket.once('connect', () => socket.write(MESSAGE));
    socket.on('data', (chunk) => {
      received += chunk.length;
      socket.write(chunk);
      if (received >= MIN_BYTES) resolveBusy();
    });
    return { socket, end: endOf(socket) };
  });
  await isBusy;
  assert.ok(clients.every(({ socket }) => socket.readyState === 'open'));
  await worker.terminate();
  assert.ok((await closeAbandonedDescriptors(descriptors)) >= MIN_ABANDONED);
  const ends = await Promise.all(clients.map(({ end }) => end));
  // A client that writes while the reset arrives gets EPIPE.
  assert.deepEqual(
    ends.filter((end) => end !== 'ECONNRESET' && end !== 'EPIPE'),
    [],
  );
  await backend.waitUntilIdle();
  assert.equal(await closeAbandonedDescriptors(descriptors), 0);
  await eventually(() => assert.equal(readdirSync('/proc/self/fd').length, before));
  await using again = await echoServer({ host, port });
  assert.equal(again.port, port);
});

/** Resolves with the error code of a connection, or with how it ended otherwise. */
function endOf(socket: Socket): Promise<string> {
  socket.setTimeout(MAX_SILENCE_MS, () => socket.destroy(new Error('it stays open')));
  return new Promise((resolve) => {
    socket.once('end', () => resolve('FIN'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
