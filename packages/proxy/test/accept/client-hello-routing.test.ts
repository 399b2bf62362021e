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

test('a client is led by the name that it asks for, and its endpoint ends the TLS', async () => {
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

test('a name of somebody else, or none, is answered by an alert that says so; no endpoint hears of it', async () => {
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

test('a wildcard leads names of one label more, and without hosts every name and none are led', async () => {
  await using backend = await tlsEcho();
  const wild = { settings: { tlsPassthrough: true, hosts: ['*.shop.example'] } };
  using worker = await startWorkerInTest(webService([backend.endpoint], wild));
  for (const [name, event] of [
    ['eu.shop.example', 'secureConnect'],
    ['shop.example', 'error'],
    ['a.eu.shop.example', 'error'],
  ] as const) {
    const client = tlsClient(worker, name);
    await once(client, event);
    client.destroy();
  }
  using open = await startWorkerInTest(webService([backend.endpoint], { settings: { tlsPassthrough: true } }));
  for (const name of ['any.example', '']) {
    const client = tlsClient(open, name);
    await once(client, 'secureConnect');
    client.destroy();
  }
  await eventually(() => assert.equal(worker.row[ACTIVE], 0));
  await eventually(() => assert.equal(open.row[ACTIVE], 0));
  assert.equal(worker.row[outcomeColumn('unknown-host')], 2);
});

test('one that is refused after its ClientHello counts as open until all of it is counted', async () => {
  await using backend = await tlsEcho();
  const settings = { ...PASSTHROUGH.settings, sourceRanges: ['192.0.2.0/24'] };
  const atReset: unknown[] = [];
  const transport = watchingResets(() => atReset.push([worker.row[ACTIVE], worker.outcomes()]));
  using worker = await startWorkerInTest(webService([backend.endpoint], { settings }), { transport });
  await once(tlsClient(worker, 'shop.example'), 'error');
  assert.deepEqual(atReset, [[1, { 'source-range': 1 }]]);
  assert.equal(worker.row[ACTIVE], 0);
});

test('what is not TLS is reset; TLS that cannot be read gets an alert, and a client that does not close is reset later', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)], PASSTHROUGH));
  await using plain = await connectClient(worker);
  await plain.send('GET / HTTP/1.1\r\n\r\n');
  assert.deepEqual(await plain.ended, { kind: 'error', code: 'ECONNRESET' });
  await using stubborn = await connectClient(worker);
  // A handshake record with a ServerHello in it.
  await stubborn.send(Buffer.of(22, 3, 1, 0, 4, 2, 0, 0, 0));
  await stubborn.waitForBytes(7);
  assert.equal(worker.row[ACTIVE], 1);
  worker.tick(5);
  assert.deepEqual(await stubborn.ended, { kind: 'end' });
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'bad-client-hello': 2 }));
  assert.equal(worker.row[ACTIVE], 0);
});

test('port 80 beside it stays plain', async () => {
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

/** Tells before a stream of a client is reset. */
function watchingResets(onReset: () => void): TcpTransport {
  return {
    connect: netTransport.connect,
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
