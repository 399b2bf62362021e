import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { TLV_TYPE } from '../../src/protocol/proxy-header.ts';
import { ProxyHeaderReader } from '../../src/protocol/read-proxy-header.ts';
import { netTransport } from '../../src/transport/tcp/net-transport.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';
import { readTlvs } from '../protocol/proxy-header-tlvs.ts';

const TRUSTED = { trustProxyProtocol: ['127.0.0.0/8'] };
const HEADER = 'PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n';
const RESET = { kind: 'error', code: 'ECONNRESET' } as const;

test('removes the header of a trusted load balancer, does not count it, and uses its client address', async () => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], { settings: { sourceRanges: ['192.0.2.0/24'] } });
  using worker = await startWorkerInTest(service, TRUSTED);
  await using client = await connectClient(worker);
  for (const byte of HEADER) await client.send(byte);
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
  await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
  assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[CONNECTIONS], worker.row[ACTIVE]], [5, 5, 1, 0]);
});

test('relays bytes behind the header, and refuses a client outside of the source ranges', async () => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], { settings: { sourceRanges: ['192.0.2.0/24'] } });
  using worker = await startWorkerInTest(service, TRUSTED);
  await using client = await connectClient(worker);
  await client.send(`${HEADER}hello`);
  assert.equal((await client.take(5)).toString(), 'hello');
  await using outside = await connectClient(worker);
  await outside.send('PROXY TCP4 203.0.113.1 198.51.100.1 4711 443\r\n');
  assert.deepEqual(await outside.ended, RESET);
  assert.deepEqual(worker.outcomes(), { 'source-range': 1 });
});

test('refuses a trusted peer with a missing, invalid or incomplete header, and keeps none of them in memory', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), TRUSTED);
  for (const first of ['GET / HTTP/1.1\r\n', 'PROXY TCP4 300.0.0.1 1.1.1.1 1 2\r\n']) {
    await using client = await connectClient(worker);
    await client.send(first);
    assert.deepEqual(await client.ended, RESET);
  }
  await using slow = await connectClient(worker);
  await slow.send('PROXY');
  await eventually(() => assert.equal(worker.row[ACTIVE], 1));
  worker.tick(20);
  assert.deepEqual(await slow.ended, RESET);
  const portCheck = await connectClient(worker);
  await portCheck.close();
  await eventually(() => {
    assert.deepEqual(worker.outcomes(), { 'bad-proxy-header': 2, 'prelude-timeout': 1, 'prelude-incomplete': 1 });
  });
  assert.equal(worker.row[ACTIVE], 0);
  assert.equal(backend.acceptedConnections, 0);
});

test('relays the header of an untrusted peer as data', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), { trustProxyProtocol: ['192.0.2.0/24'] });
  await using client = await connectClient(worker);
  await client.send(HEADER);
  assert.equal((await client.take(HEADER.length)).toString(), HEADER);
});

for (const version of ['v1', 'v2'] as const) {
  test(`sends a ${version} header with client and listener to the endpoint first, and does not count it`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], { settings: { proxyProtocol: version } }));
    await using client = await connectClient({ ...worker, localAddress: '127.0.0.77' });
    await client.send('x');
    await client.take(/x$/).then((bytes) => {
      const found = new ProxyHeaderReader().push(bytes);
      assert.ok(found !== 'more' && found.kind === 'header');
      assert.deepEqual(found.header.addresses, {
        source: { address: '127.0.0.77', port: client.localPort },
        destination: { address: worker.host, port: worker.port },
      });
      assert.equal(found.consumed, bytes.length - 1);
      if (version === 'v2') assert.deepEqual([...readTlvs(bytes.subarray(0, -1)).keys()], [TLV_TYPE.uniqueId]);
      else assert.match(bytes.toString(), /^PROXY TCP4 /);
    });
    assert.equal(worker.row[RECEIVED], 1);
  });
}

test('sends the client address of a received header to the endpoint', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], { settings: { proxyProtocol: 'v1' } }),
    TRUSTED,
  );
  await using client = await connectClient(worker);
  await client.send(`${HEADER}!`);
  assert.equal((await client.take(/!$/)).toString(), `${HEADER}!`);
});

/**
 * A transport that simulates clients that reset before the connection is accepted. The kernel does not know the address
 * of such a client.
 */
const CLIENTS_ARE_GONE: TcpTransport = {
  ...netTransport,
  listen: (at, events) =>
    netTransport.listen(at, {
      onListening: () => events.onListening(),
      onFailed: (code) => events.onFailed(code),
      onAcceptError: (code) => events.onAcceptError(code),
      onConnection: (stream) => events.onConnection(Object.defineProperty(stream, 'remoteAddress', { value: '' })),
    }),
};

for (const [what, settings, trust] of [
  ['its PROXY header would be relayed as data', {}, TRUSTED],
  ['its endpoint would not learn the client address', { proxyProtocol: 'v2' }, {}],
] as const) {
  test(`does not relay a client that is gone already: ${what}`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], { settings }), {
      ...trust,
      transport: CLIENTS_ARE_GONE,
    });
    assert.deepEqual(await connectAndAwaitEnd(worker), RESET);
    assert.deepEqual(worker.outcomes(), { 'client-gone': 1 });
    assert.deepEqual([worker.row[RECEIVED], backend.acceptedConnections], [0, 0]);
  });
}
