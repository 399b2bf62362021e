// Tests what HTTP clients of a suspended Service get: the message of the operator.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type { RunningProxy } from '../../../src/index.ts';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet, waitForListenerReport } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

const MESSAGE = 'Your "traffic" <harms> others; call us.';
const SHOP = { kind: 'tenant', tenant: 'shop' } as const;

interface Scenario {
  readonly fleet: Fleet;
  readonly proxy: RunningProxy;
  /** How many requests the endpoint has received. */
  readonly received: () => number;
}

async function serving(context: TestContext, over: Partial<TestService>): Promise<Scenario> {
  let received = 0;
  const server = createServer((_request, response) => {
    received += 1;
    response.end('served');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const fleet = await startFleet();
  context.after(() => fleet[Symbol.asyncDispose]());
  const endpoints = [{ address: '127.0.0.1', port: (server.address() as AddressInfo).port }];
  const settings = { httpPorts: [PORT], ...over.settings };
  await fleet.serve({ name: 'web', port: PORT, endpoints, ...over, settings });
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  return { fleet, proxy, received: () => received };
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request of HTTP/1.1 on a connection of its own. */
async function ask(fleet: Fleet, { accept = 'text/plain', method = 'GET', isTls = false } = {}): Promise<Answer> {
  const options = { host: fleet.addressOf(), port: PORT, method, agent: false };
  const headers = { accept, host: 'web.example' };
  const request = isTls
    ? httpsRequest({ ...options, ...TRUSTING_CLIENT, headers })
    : httpRequest({ ...options, headers });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let body = '';
  for await (const part of response) body += part;
  return { status: response.statusCode, headers: response.headers, body };
}

/** Sends a request of HTTP/2, and waits until the connection has ended. */
async function askHttp2(fleet: Fleet, isTls: boolean): Promise<Answer> {
  const session = connect(`${isTls ? 'https' : 'http'}://${fleet.addressOf()}:${PORT}`, isTls ? TRUSTING_CLIENT : {});
  const closed = once(session, 'close');
  const stream = session.request({ ':path': '/', ':authority': 'web.example', accept: 'application/json' });
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  let body = '';
  for await (const part of stream) body += part;
  await closed;
  return { status: Number(headers[':status']), headers, body };
}

test('answers requests of a suspended Service with 403 and the message of the operator, and serves again afterwards', async (context) => {
  const { fleet, proxy, received } = await serving(context, {});
  assert.equal((await ask(fleet)).body, 'served');
  await fleet.cutOff(SHOP, 'abuse', MESSAGE);
  await waitForListenerReport(proxy, { bound: true, listening: false, error: null });
  const text = await ask(fleet);
  assert.deepEqual(
    [text.status, text.body, text.headers.connection, text.headers['cache-control']],
    [403, `403 Forbidden\n\nThis service is suspended: ${MESSAGE}\n`, 'close', 'no-store'],
  );
  const json = await ask(fleet, { accept: 'application/json' });
  assert.deepEqual(JSON.parse(json.body), {
    status: 403,
    reason: 'suspended',
    message: `This service is suspended: ${MESSAGE}`,
  });
  const html = await ask(fleet, { accept: 'text/html' });
  assert.ok(html.body.includes('Your &#34;traffic&#34; &#60;harms&#62; others; call us.'), html.body);
  const head = await ask(fleet, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body], [403, text.headers['content-length'], '']);
  assert.deepEqual(JSON.parse((await askHttp2(fleet, false)).body).reason, 'suspended');
  assert.equal(received(), 1);
  await fleet.store.suspensions.remove('abuse');
  await eventually(async () => assert.equal((await ask(fleet)).body, 'served'));
});

test('answers with 403 after the TLS handshake, by HTTP/1.1 and HTTP/2', async (context) => {
  const { fleet, received } = await serving(
    context,
    terminatingTls({ alpn: ['h2', 'http/1.1'], settings: { httpPorts: [PORT] } }),
  );
  await fleet.cutOff(SHOP, 'abuse', MESSAGE);
  await eventually(async () => assert.equal((await ask(fleet, { isTls: true })).status, 403));
  assert.ok((await ask(fleet, { isTls: true })).body.includes(MESSAGE));
  const { status, body } = await askHttp2(fleet, true);
  assert.deepEqual([status, JSON.parse(body).message], [403, `This service is suspended: ${MESSAGE}`]);
  assert.equal(received(), 0);
});

test('answers with 403 while no endpoint is ready, and refuses connections again afterwards', async (context) => {
  const own = await serving(context, { endpoints: [] });
  const tls = terminatingTls({ alpn: ['h2', 'http/1.1'], settings: { httpPorts: [PORT] } });
  const withTls = await serving(context, { ...tls, endpoints: [] });
  const hosts = ['web.example'];
  const shared = await serving(context, { endpoints: [], shared: true, settings: { httpPorts: [PORT], hosts } });
  for (const [{ fleet }, isTls] of [
    [own, false],
    [withTls, true],
    [shared, false],
  ] as const) {
    await assert.rejects(ask(fleet, { isTls }), { code: 'ECONNREFUSED' });
    await fleet.cutOff(SHOP, 'abuse', MESSAGE);
    await eventually(async () => assert.equal((await ask(fleet, { isTls })).status, 403));
    assert.ok((await ask(fleet, { isTls })).body.includes(MESSAGE));
    assert.equal((await askHttp2(fleet, isTls)).status, 403);
    await fleet.store.suspensions.remove('abuse');
    await eventually(() => assert.rejects(ask(fleet, { isTls }), { code: 'ECONNREFUSED' }));
  }
});

test('shows the message at a listener that Services share, and at most 256 characters of it', async (context) => {
  const { fleet } = await serving(context, { shared: true, settings: { httpPorts: [PORT], hosts: ['web.example'] } });
  const long = `${'x'.repeat(255)}\u{1f600}${'y'.repeat(100)}`;
  await fleet.cutOff(SHOP, 'abuse', `a\u0000\nb ${long}`);
  await eventually(async () => assert.equal((await ask(fleet)).status, 403));
  const { body } = await ask(fleet);
  const message = `This service is suspended: a b ${'x'.repeat(251)}…`;
  assert.equal(body, `403 Forbidden\n\n${message}\n`);
  const http2 = await askHttp2(fleet, false);
  assert.deepEqual([http2.status, JSON.parse(http2.body).message], [403, message]);
});

test('admits clients of a suspended Service within its limits only', async (context) => {
  const limits = { connections: 0, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };
  const { fleet, proxy } = await serving(context, { settings: { limits } });
  await fleet.cutOff(SHOP, 'abuse', MESSAGE);
  await waitForListenerReport(proxy, { bound: true, listening: false });
  await assert.rejects(ask(fleet), { code: 'ECONNRESET' });
  await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'connection-limit': 1 }));
});
