// Tests how the proxy ends WebSocket connections: when the proxy or an endpoint drains, and when a Service is suspended.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import type { WebSocket } from 'ws';
import type { RunningProxy } from '../../../src/index.ts';
import { startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor, startServing, webService } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import {
  echoOf,
  openWebSocket,
  type WebSocketEndpoint,
  type WebSocketTarget,
  webSocketEndpoint,
  webSocketSession,
} from '../../fixtures/websocket.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

/** RFC 6455 §7.4.1: the connection ended without a Close frame. */
const ABNORMAL_CLOSURE = 1006;
const NORMAL_CLOSURE = 1000;
const DRAIN_SECONDS = 10;

const VERSIONS = ['HTTP/1.1', 'HTTP/2'] as const;

const http = ({ endpoint }: WebSocketEndpoint, over: Partial<TestService> = {}): TestService =>
  webService([endpoint], {
    ...over,
    settings: { httpPorts: [PORT], drainTimeoutMs: DRAIN_SECONDS * 1_000, ...over.settings },
  });

async function sessionTo(
  context: TestContext,
  at: { readonly host: string; readonly port: number },
): Promise<ClientHttp2Session> {
  const session = await webSocketSession(at);
  context.after(() => session.destroy());
  return session;
}

const targetFor = async (
  context: TestContext,
  version: (typeof VERSIONS)[number],
  at: { readonly host: string; readonly port: number },
): Promise<WebSocketTarget> => (version === 'HTTP/2' ? sessionTo(context, at) : at);

const activeOf = (proxy: RunningProxy): number | undefined => proxy.view().services[0]?.active;

async function connectAndClose(at: { readonly host: string; readonly port: number }): Promise<void> {
  await using _ = await connectClient(at);
}

async function closeCodeOf(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, 'close')) as [number];
  return code;
}

for (const version of VERSIONS) {
  test(`${version}: a WebSocket continues while the proxy drains, and is reset at the end of the drain`, async (context) => {
    await using backend = await webSocketEndpoint();
    await using fleet = await startFleet();
    const proxy = await startServing(fleet, http(backend));
    const at = { host: fleet.addressOf(), port: PORT };
    const target = await targetFor(context, version, at);
    const [leaving, staying] = [await openWebSocket(target), await openWebSocket(target)];
    const goaway = 'request' in target ? once(target, 'goaway') : undefined;
    const closing = proxy.close({ drainMs: 600_000 });
    await eventually(() => assert.rejects(connectAndClose(at), { code: 'ECONNREFUSED' }));
    // RFC 9113 §6.8: a client of HTTP/2 learns that the connection takes no further requests.
    assert.deepEqual((await goaway)?.slice(0, 1), goaway && [constants.NGHTTP2_NO_ERROR]);
    for (const socket of [leaving, staying]) assert.equal(await echoOf(socket, 'still here'), 'still here');
    leaving.close(NORMAL_CLOSURE);
    assert.equal(await closeCodeOf(leaving), NORMAL_CLOSURE);
    assert.equal(await echoOf(staying, 'alone'), 'alone');
    await eventually(() => assert.equal(activeOf(proxy), 1));
    const severed = closeCodeOf(staying);
    // Ends the drain.
    void proxy.close({ drainMs: 0 });
    assert.equal(await severed, ABNORMAL_CLOSURE);
    await closing;
    assert.equal(outcomesFor(proxy)?.drained, 1);
    await eventually(() => assert.equal(backend.server.clients.size, 0));
  });

  for (const { name, transport } of TRANSPORTS) {
    test(`${version}, ${name}: a WebSocket to a removed endpoint continues for the drain timeout, and is then ended`, async (context) => {
      await using leaving = await webSocketEndpoint();
      await using staying = await webSocketEndpoint();
      using worker = await startWorkerInTest(http(leaving), { transport });
      const target = await targetFor(context, version, worker);
      const socket = await openWebSocket(target);
      worker.serve(http(staying));
      const other = await openWebSocket(target);
      assert.deepEqual([leaving.server.clients.size, staying.server.clients.size], [1, 1]);
      worker.tick(DRAIN_SECONDS - 1);
      assert.equal(await echoOf(socket, 'still here'), 'still here');
      const severed = closeCodeOf(socket);
      worker.tick(2);
      assert.equal(await severed, ABNORMAL_CLOSURE);
      await eventually(() => assert.equal(leaving.server.clients.size, 0));
      assert.equal(worker.outcomes().drained, 1);
      // A stream of the same connection, or another connection.
      assert.equal(await echoOf(other, 'not drained'), 'not drained');
    });
  }

  test(`${version}: a suspension resets the WebSockets of its tenant, and no others`, async (context) => {
    await using backend = await webSocketEndpoint();
    await using fleet = await startFleet();
    const proxy = await startServing(
      fleet,
      http(backend, { shared: true, settings: { hosts: ['shop.example'] } }),
      http(backend, { name: 'blog', namespace: 'other', shared: true, settings: { hosts: ['blog.example'] } }),
    );
    const at = { host: fleet.addressOf(), port: PORT };
    const [shop, blog] = [
      await openWebSocket(await targetFor(context, version, at), { host: 'shop.example' }),
      await openWebSocket(await targetFor(context, version, at), { host: 'blog.example' }),
    ];
    const severed = closeCodeOf(shop);
    await fleet.cutOff({ kind: 'tenant', tenant: 'shop' });
    assert.equal(await severed, ABNORMAL_CLOSURE);
    await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'cut-off': 1 }));
    assert.equal(await echoOf(blog, 'not suspended'), 'not suspended');
    assert.equal(backend.server.clients.size, 1);
  });
}

test('HTTP/2: a suspension resets the streams of its tenant on a connection of another tenant', async (context) => {
  await using backend = await webSocketEndpoint();
  await using fleet = await startFleet();
  const proxy = await startServing(
    fleet,
    http(backend, { shared: true, settings: { hosts: ['shop.example'] } }),
    http(backend, { name: 'blog', namespace: 'other', shared: true, settings: { hosts: ['blog.example'] } }),
  );
  const at = { host: fleet.addressOf(), port: PORT };
  const session = await sessionTo(context, at);
  // The connection belongs to the Service of its first request.
  const shop = await openWebSocket(session, { host: 'shop.example' });
  const blog = await openBare(session, 'blog.example');
  const elsewhere = await openWebSocket(await sessionTo(context, at), { host: 'shop.example' });
  const closed = once(blog, 'close');
  await fleet.cutOff({ kind: 'tenant', tenant: 'other' });
  await closed;
  assert.equal(blog.rstCode, constants.NGHTTP2_CANCEL);
  await eventually(() => assert.deepEqual(outcomesFor(proxy, 'blog'), { 'cut-off': 1 }));
  for (const socket of [shop, elsewhere]) assert.equal(await echoOf(socket, 'not suspended'), 'not suspended');
  assert.equal(session.closed, false);
  assert.deepEqual(outcomesFor(proxy), {});
});

/** Opens a WebSocket as a stream of HTTP/2, and resolves when the endpoint has accepted the WebSocket. */
async function openBare(session: ClientHttp2Session, authority: string): Promise<ClientHttp2Stream> {
  const stream = session.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':authority': authority,
    ':path': '/',
    'sec-websocket-version': '13',
  });
  stream.on('error', () => undefined);
  stream.resume();
  await once(stream, 'response');
  return stream;
}
