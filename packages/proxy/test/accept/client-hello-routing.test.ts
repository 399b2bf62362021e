import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { ACTIVE, outcomeColumn, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { netTransport } from '../../src/transport/tcp/net-transport.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { tlsClient, tlsEcho } from '../fixtures/tls-echo.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const PASSTHROUGH = { settings: { tlsPassthrough: true, hosts: ['shop.example'] } };

test('routes a client by its server name to an endpoint that terminates the TLS', async () => {
  await using backend = await tlsEcho();
  using worker = await startWorkerInTest(webService([backend.endpoint], PASSTHROUGH));
  const client = tlsClient(worker, 'SHOP.example');
  await once(client, 'secureConnect');
  client.write('hello');
  const [echoed] = (await once(client, 'data')) as [Buffer];
  assert.equal(echoed.toString(), 'hello');
  assert.deepEqual(backend.names, ['SHOP.example']);
  const wire = { read: client.bytesRead, written: client.bytesWritten };
  client.destroy();
  await eventually(() => assert.equal(worker.row[ACTIVE], 0));
  assert.ok((worker.row[RECEIVED] ?? 0) >= wire.written);
  assert.ok((worker.row[SENT] ?? 0) >= wire.read);
});

test('answers an unknown or missing server name with an alert, and connects to no endpoint', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)], PASSTHROUGH));
  for (const name of ['other.example', '']) {
    const client = tlsClient(worker, name);
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
    assert.match(String(error.code), /UNRECOGNIZED_NAME/);
  }
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'unknown-host': 2 }));
  assert.equal(worker.row[SENT], 14);
  assert.equal(worker.row[ACTIVE], 0);
  assert.equal(backend.acceptedConnections, 0);
});

test('a wildcard matches one more label, and a Service without hosts matches every client', async () => {
  await using backend = await tlsEcho();
  const wildcard = { settings: { tlsPassthrough: true, hosts: ['*.shop.example'] } };
  using worker = await startWorkerInTest(webService([backend.endpoint], wildcard));
  for (const [name, event] of [
    ['eu.shop.example', 'secureConnect'],
    ['shop.example', 'error'],
    ['a.eu.shop.example', 'error'],
  ] as const) {
    const client = tlsClient(worker, name);
    await once(client, event);
    client.destroy();
  }
  using anyHost = await startWorkerInTest(webService([backend.endpoint], { settings: { tlsPassthrough: true } }));
  for (const name of ['any.example', '']) {
    const client = tlsClient(anyHost, name);
    await once(client, 'secureConnect');
    client.destroy();
  }
  await eventually(() => assert.equal(worker.row[ACTIVE], 0));
  await eventually(() => assert.equal(anyHost.row[ACTIVE], 0));
  assert.equal(worker.row[outcomeColumn('unknown-host')], 2);
});

test('a client that is refused after its ClientHello is active until its outcome is counted', async () => {
  await using backend = await tlsEcho();
  const settings = { ...PASSTHROUGH.settings, sourceRanges: ['192.0.2.0/24'] };
  const atReset: unknown[] = [];
  const transport = observingResets(() => atReset.push([worker.row[ACTIVE], worker.outcomes()]));
  using worker = await startWorkerInTest(webService([backend.endpoint], { settings }), { transport });
  await once(tlsClient(worker, 'shop.example'), 'error');
  assert.deepEqual(atReset, [[1, { 'source-range': 1 }]]);
  assert.equal(worker.row[ACTIVE], 0);
});

test('resets a client without TLS, and sends an alert to a client with invalid TLS before it is reset', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)], PASSTHROUGH));
  await using plain = await connectClient(worker);
  await plain.send('GET / HTTP/1.1\r\n\r\n');
  assert.deepEqual(await plain.ended, { kind: 'error', code: 'ECONNRESET' });
  await using lingering = await connectClient(worker);
  // A handshake record with a ServerHello, which a client must not send.
  await lingering.send(Buffer.of(22, 3, 1, 0, 4, 2, 0, 0, 0));
  await lingering.waitForBytes(7);
  assert.equal(worker.row[ACTIVE], 1);
  worker.tick(5);
  assert.deepEqual(await lingering.ended, { kind: 'end' });
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'bad-client-hello': 2 }));
  assert.equal(worker.row[ACTIVE], 0);
});

test('relays port 80 of a TLS passthrough Service without reading a ClientHello', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], { port: 80, settings: { tlsPassthrough: true } }),
    {
      port: 80,
    },
  );
  await using client = await connectClient(worker);
  await client.send('GET /');
  assert.equal((await client.take(5)).toString(), 'GET /');
});

/** Returns a transport that calls `onReset` before a client's stream is reset. */
function observingResets(onReset: () => void): TcpTransport {
  return {
    ...netTransport,
    listen: (at, events) =>
      netTransport.listen(at, {
        onListening: () => events.onListening(),
        onFailed: (code) => events.onFailed(code),
        onAcceptError: (code) => events.onAcceptError(code),
        onConnection(stream) {
          const reset = stream.reset.bind(stream);
          events.onConnection(
            Object.assign(stream, {
              reset() {
                onReset();
                reset();
              },
            }),
          );
        },
      }),
  };
}
