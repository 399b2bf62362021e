// One worker with as many connections as one process may have descriptors for.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { echoServer, eventually } from '@weir/testkit';
import { descriptorLimit, maxConnectionsFor } from '../../../src/limits/descriptor-limit.ts';
import { loopbackAddress } from '../../fixtures/listen-address.ts';
import { endpointOf } from '../../fixtures/services.ts';
import { type RelayProcess, startRelayProcess } from './relay-process.ts';

const MIN_DESCRIPTORS = 20_000;
const MAX_CONNECTIONS = 10_000;
/** How many connections are opened at the same time: fewer than fit into the queue of the listen socket. */
const AT_ONCE = 500;
const PATTERN_BYTES = 64;
/** Ends the test soon if the relay forgets a connection. */
const MAX_SILENCE_MS = 10_000;

test('20,000 descriptors: each connection receives its own bytes, and all are closed and counted', {
  timeout: 120_000,
}, async () => {
  const limit = descriptorLimit() ?? 0;
  assert.ok(limit >= MIN_DESCRIPTORS, `this test needs ${MIN_DESCRIPTORS} descriptors (ulimit -Hn), and has ${limit}`);
  const count = Math.min(MAX_CONNECTIONS, maxConnectionsFor(limit));
  // Two endpoint addresses, so that the local ports of the worker suffice on any machine.
  await using first = await echoServer({ host: loopbackAddress() });
  await using second = await echoServer({ host: loopbackAddress() });
  await using relay = await startRelayProcess([endpointOf(first), endpointOf(second)]);
  const before = relay.descriptors();
  const sockets: Socket[] = [];
  try {
    while (sockets.length < count) {
      const more = Math.min(AT_ONCE, count - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: more }, () => talk(relay)))));
    }
    assert.equal(relay.descriptors(), before + 2 * count);
    assert.equal((await relay.report()).countedDescriptors, before + 2 * count);
    // A reset loses the acknowledgements that the clients have delayed.
    await eventually(async () => {
      const { active, sent } = await relay.report(1);
      assert.deepEqual({ active, sent }, { active: count, sent: count * PATTERN_BYTES });
    });
    const isReset = sockets.map((_, index) => index % 2 === 0).sort(() => Math.random() - 0.5);
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    for (const [index, socket] of sockets.entries()) {
      socket.setTimeout(MAX_SILENCE_MS, () => socket.destroy());
      if (isReset[index]) socket.resetAndDestroy();
      else socket.end();
    }
    await Promise.all(closed);
    const resets = isReset.filter(Boolean).length;
    await eventually(async () => {
      const { active, outcomes } = await relay.report(1);
      assert.deepEqual(
        { active, outcomes },
        { active: 0, outcomes: { completed: count - resets, 'reset-by-client': resets } },
      );
    });
    const { connections, received, sent, unacknowledged, reported } = await relay.report();
    const bytes = count * PATTERN_BYTES;
    assert.deepEqual(
      { connections, received, sent, unacknowledged, reported },
      { connections: count, received: bytes, sent: bytes, unacknowledged: 0, reported: [] },
    );
    await eventually(() => assert.equal(relay.descriptors(), before));
    assert.equal((await relay.report()).countedDescriptors, before);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

/** Connects, sends random bytes, and waits for their echo. */
function talk({ host, port }: RelayProcess): Promise<Socket> {
  const pattern = randomBytes(PATTERN_BYTES);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host, port, noDelay: true });
  let received = Buffer.alloc(0);
  socket.once('connect', () => socket.write(pattern));
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.length < PATTERN_BYTES) return;
    if (received.equals(pattern)) resolve(socket);
    else reject(new Error(`received ${received.length} other bytes than sent`));
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('closed before the echo was complete')));
  return promise;
}
