// Counts clients that connect and send no request, ClientHello or byte: as refused where the proxy must read something first.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, httpBackend } from '@weir/testkit';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT } from '../../src/metering/counters.ts';
import type { Outcome } from '../../src/metering/outcome.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { ALL_REQUESTS } from '../fixtures/logged-requests.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';
import { udpClient, udpEndpoint } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

interface Counted {
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly connections: number;
  readonly received: number;
}

const counted = (worker: WorkerInTest, { outcomes, connections, received }: Counted): Promise<void> =>
  eventually(() => {
    assert.deepEqual(worker.outcomes(), outcomes);
    assert.deepEqual([worker.row[CONNECTIONS], worker.row[RECEIVED], worker.row[ACTIVE]], [connections, received, 0]);
  });

/** Connects, sends `bytes`, and leaves. */
async function scan(worker: WorkerInTest, bytes = ''): Promise<void> {
  await using client = await connectClient(worker);
  if (bytes !== '') await client.send(bytes);
  await client.end();
  await client.ended;
}

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: a client that leaves an HTTP port before its first request is refused, and not a connection`, async () => {
    await using backend = await httpBackend({ handler: (_request, response) => response.end('x') });
    const settings = { httpPorts: [PORT], accessLog: ALL_REQUESTS };
    using worker = await startWorkerInTest(webService([endpointOf(backend)], { settings }), { transport });
    await scan(worker);
    await counted(worker, { outcomes: { 'prelude-incomplete': 1 }, connections: 0, received: 0 });
    await scan(worker, 'GET / HTTP/1.1\r\nHo');
    await counted(worker, { outcomes: { 'prelude-incomplete': 2 }, connections: 0, received: 18 });
    await using silent = await connectClient(worker);
    await eventually(() => assert.equal(worker.row[ACTIVE], 1));
    worker.tick(12);
    await silent.ended;
    await silent.end();
    await counted(worker, {
      outcomes: { 'prelude-incomplete': 2, 'prelude-timeout': 1 },
      connections: 0,
      received: 18,
    });
    assert.equal(worker.row[SENT], 0);
    await using client = await connectClient(worker);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await client.ended;
    await client.end();
    await eventually(() => assert.deepEqual([worker.row[CONNECTIONS], worker.outcomes().completed], [1, 1]));
    worker.apply({ kind: 'mark', sequence: 1 });
    const chunks = worker.answers.flatMap((message) => (message.kind === 'access-log' ? [message.chunk.bytes] : []));
    const reasons = Buffer.concat(chunks)
      .toString('utf8')
      .match(/"reason":("[a-z-]+"|null),"receivedBytes":[0-9]+/g);
    assert.deepEqual(reasons?.slice(0, 3), [
      '"reason":"prelude-incomplete","receivedBytes":0',
      '"reason":"prelude-incomplete","receivedBytes":18',
      '"reason":"prelude-timeout","receivedBytes":0',
    ]);
  });

  test(`${name}: a client that leaves a TLS port without a ClientHello is refused, and not a connection`, async () => {
    await using backend = await echoServer();
    const settings = { tlsPassthrough: true };
    using worker = await startWorkerInTest(webService([endpointOf(backend)], { settings }), { transport });
    await scan(worker);
    await scan(worker, '\x16\x03\x01');
    await counted(worker, { outcomes: { 'prelude-incomplete': 2 }, connections: 0, received: 3 });
    assert.equal(backend.acceptedConnections, 0);
  });

  test(`${name}: a client that connects to a TCP port and leaves is a connection without bytes`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)]), { transport });
    await scan(worker);
    await counted(worker, { outcomes: { completed: 1 }, connections: 1, received: 0 });
  });
}

test('a UDP flow that the endpoint never answers is a flow with the received bytes', async () => {
  await using endpoint = await udpEndpoint();
  const voice = { name: 'voice', port: PORT, protocol: 'UDP', endpoints: [endpoint.endpoint] } as const;
  using worker = await startWorkerInTest(voice);
  await using client = await udpClient(worker);
  await client.send('hello');
  await endpoint.next();
  worker.tick(70);
  await counted(worker, { outcomes: { 'idle-timeout': 1 }, connections: 1, received: 5 });
  assert.equal(worker.row[SENT], 0);
});
