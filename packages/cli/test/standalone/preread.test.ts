// Tests connections whose PROXY header or ClientHello a proxy reads before it routes them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

const HEADER = 'PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n';

test("forwards the client's address from a trusted load balancer to the endpoint", async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const annotations = { 'weir.dev/proxy-protocol': 'v1' };
  files.write('shop.yaml', service('web', { port, annotations }), endpointSlice('web', backend.port));
  const trust = ['--trust-proxy-protocol', '192.0.2.0/24', '--trust-proxy-protocol', '127.0.0.1/32'];
  await using _fleet = await startTestStandalone(files, trust);
  await using client = await connectClient({ port });
  await client.send(`${HEADER}!`);
  assert.equal((await client.take(/!$/)).toString(), `${HEADER}!`);
});

test('treats a PROXY header as payload if no load balancer is trusted', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const annotations = { 'weir.dev/proxy-protocol': 'v1' };
  files.write('shop.yaml', service('web', { port, annotations }), endpointSlice('web', backend.port));
  await using _fleet = await startTestStandalone(files);
  await using client = await connectClient({ port });
  await client.send(`${HEADER}!`);
  const expectedHeader = `PROXY TCP4 127.0.0.1 127.0.0.1 ${client.localPort} ${port}\r\n`;
  assert.equal((await client.take(/!$/)).toString(), `${expectedHeader}${HEADER}!`);
});

test('routes TLS passthrough by server name and refuses other names with an alert', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const annotations = { 'weir.dev/tls-passthrough': 'true', 'weir.dev/hosts': '*.shop.example' };
  files.write('shop.yaml', service('web', { port, annotations }), endpointSlice('web', backend.port));
  await using _fleet = await startTestStandalone(files);
  const stranger = connect({ host: '127.0.0.1', port, servername: 'game.example' });
  const [error] = (await once(stranger, 'error')) as [NodeJS.ErrnoException];
  assert.match(error.code ?? '', /UNRECOGNIZED_NAME/);
  assert.equal(backend.acceptedConnections, 0);
  const customer = connect({ host: '127.0.0.1', port, servername: 'eu.shop.example' });
  customer.on('error', () => {}); // The echo server does not speak TLS, so the handshake fails.
  await eventually(() => assert.equal(backend.acceptedConnections, 1));
  customer.destroy();
});
