// Connections whose bytes are in the kernel and not acknowledged by the client.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import { ACTIVE, SENT, UNACKNOWLEDGED } from '../../../src/metering/counters.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { scriptedEndpoint } from '../../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../../fixtures/services.ts';
import { cutOff } from '../../fixtures/suspensions.ts';
import { uidOf } from '../../fixtures/tables.ts';
import { receivedByKernel } from '../../fixtures/tcp-info.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';
import { PacedClient } from './paced-client.ts';
import { startTestListener } from './test-listener.ts';

/** While the client reads nothing: more bytes than its kernel accepts, and fewer than the kernels of both sides buffer. */
const BYTES = 200_000;
/** How many bytes the slow client reads between two polls. */
const STEP = 8_000;
const TICKS_PER_STEP = 60;
/** Fewer bytes than the kernel takes for a client that reads nothing. */
const MAX_UNREAD_BYTES = 32_768;
/** Fewer seconds than two steps take, and more than one step takes. */
const IDLE_SECONDS = 90;
const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};

const text = randomBytes(BYTES / 2).toString('hex');

test('a half-closed connection with unacknowledged bytes stays active, counts against the limit, and can be cut off', async () => {
  const registry = new LimiterRegistry(1);
  const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
  registry.configure(rows[0], { ...UNLIMITED, connections: 1 });
  registry.configure(rows[1], UNLIMITED);
  await using backend = await scriptedEndpoint();
  const service = webService([endpointOf(backend)]);
  using worker = await startWorkerInTest(service, { transport: epollTransport, limits: registry.addWorker(1) });
  worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
  const client = newClient(worker);
  try {
    const endpoint = await backend.next();
    await client.connected;
    client.socket.end();
    assert.deepEqual(await endpoint.ended, { kind: 'end' });
    await endpoint.send(text);
    await endpoint.end();
    await untilInKernel(worker);
    assert.equal(worker.row[ACTIVE], 1);
    const refused = await connectClient(worker).then(
      (second) => second.ended,
      ({ code }) => ({ kind: 'error', code }),
    );
    assert.deepEqual(refused, { kind: 'error', code: 'ECONNRESET' });
    await whenCountedAsSent(worker, client, () => worker.apply(cutOff()));
    assert.equal(worker.row[ACTIVE], 0);
    assert.deepEqual(worker.outcomes(), { 'connection-limit': 1, 'cut-off': 1 });
    const sent = worker.row[SENT] as number;
    assert.ok(sent < BYTES, 'the cut-off came before the client had received everything');
    assert.equal(receivedByKernel(client.socket).sequence, sent);
    client.readToEnd().catch(() => undefined);
    assert.equal(await client.failed, 'ECONNRESET');
    assert.equal(client.received, sent);
  } finally {
    client.socket.destroy();
  }
});

for (const { name, clientEnds } of [
  { name: 'an open connection', clientEnds: false },
  { name: 'a connection that both sides have half-closed', clientEnds: true },
]) {
  test(`the idle timeout does not end ${name} while the client acknowledges bytes, and ends it afterwards`, async () => {
    await using backend = await scriptedEndpoint();
    const service = webService([endpointOf(backend)], { settings: { idleTimeoutMs: IDLE_SECONDS * 1_000 } });
    using worker = await startWorkerInTest(service, { transport: epollTransport });
    const client = newClient(worker);
    try {
      const endpoint = await backend.next();
      await client.connected;
      if (clientEnds) client.socket.end();
      await endpoint.send(text);
      await endpoint.end();
      await untilInKernel(worker);
      await whenCountedAsSent(worker, client, () => undefined);
      let steps = 0;
      // Nothing but acknowledgements happens from here on. The client's kernel acknowledges more when the client has read enough.
      for (let sent = worker.row[SENT] as number, read = 0; sent < BYTES; sent = worker.row[SENT] as number) {
        worker.tick(TICKS_PER_STEP);
        assert.equal(worker.row[ACTIVE], 1, `the connection is active after ${sent} bytes`);
        await eventually(async () => {
          read = Math.min(read + STEP, BYTES);
          await client.readUntil(Math.min(read, receivedByKernel(client.socket).bytes));
          worker.tick(1);
          assert.ok((worker.row[SENT] as number) > sent, 'the client has acknowledged more');
        });
        steps += 1;
      }
      assert.ok(steps > 1, 'the client has acknowledged the bytes in several steps');
      if (!clientEnds) {
        worker.tick(IDLE_SECONDS + 1);
        assert.deepEqual(worker.outcomes(), { 'idle-timeout': 1 });
      } else {
        await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
      }
      assert.equal(worker.row[SENT], BYTES);
      assert.equal(worker.row[ACTIVE], 0);
    } finally {
      client.socket.destroy();
    }
  });

  test(`the idle timeout ends ${name} if the client acknowledges nothing`, async () => {
    await using backend = await scriptedEndpoint();
    const service = webService([endpointOf(backend)], { settings: { idleTimeoutMs: IDLE_SECONDS * 1_000 } });
    using worker = await startWorkerInTest(service, { transport: epollTransport });
    const client = newClient(worker);
    try {
      const endpoint = await backend.next();
      await client.connected;
      if (clientEnds) client.socket.end();
      await endpoint.send(text);
      await endpoint.end();
      await untilInKernel(worker);
      await whenCountedAsSent(worker, client, () => worker.tick(IDLE_SECONDS - 1));
      assert.equal(worker.row[ACTIVE], 1);
      worker.tick(2);
      assert.deepEqual(worker.outcomes(), { 'idle-timeout': 1 });
      assert.equal(worker.row[ACTIVE], 0);
      assert.equal(worker.row[SENT], receivedByKernel(client.socket).sequence);
    } finally {
      client.socket.destroy();
    }
  });
}

test('a FIN that could not be sent, because the client has reset the connection, does not count as a byte', async () => {
  using listener = await startTestListener(epollTransport);
  const arrival = listener.next();
  const client = connect(listener.port, listener.host).pause();
  client.on('error', () => undefined);
  await once(client, 'connect');
  const { stream, events } = await arrival;
  while (stream.unacknowledgedBytes() < MAX_UNREAD_BYTES) assert.equal(stream.write(Buffer.alloc(4_096)), 0);
  const unacknowledged = stream.unacknowledgedBytes();
  stream.shutdown();
  // The kernel delivers the RST at once. The stream sends its FIN later, which then fails.
  client.resetAndDestroy();
  await events.until(() => events.closed !== undefined);
  assert.equal(stream.unacknowledgedBytes(), unacknowledged);
});

function newClient({ host, port }: WorkerInTest): PacedClient {
  return new PacedClient({ host, port, expected: Buffer.from(text), readsBetweenPauses: [NONE] });
}

/** Waits until the kernel has all bytes for the client and the FIN after them. */
async function untilInKernel({ row }: WorkerInTest): Promise<void> {
  await eventually(() => assert.equal((row[SENT] as number) + (row[UNACKNOWLEDGED] as number), BYTES));
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until the worker counts as sent what the client's kernel has received, and then calls `run` at once. */
async function whenCountedAsSent({ row, tick }: WorkerInTest, client: PacedClient, run: () => void): Promise<void> {
  await eventually(() => {
    tick(1);
    assert.equal(row[SENT], receivedByKernel(client.socket).bytes);
    run();
  });
}
