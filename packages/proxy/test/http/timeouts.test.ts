// Tests the timeouts of requests with slow clients and slow endpoints. The clock of the worker advances only by `tick`.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { ACTIVE, RECEIVED, SENT, UNACKNOWLEDGED } from '../../src/metering/counters.ts';
import { epollTransport } from '../../src/transport/tcp/epoll-transport.ts';
import { refusalsIn } from '../fixtures/http-worker.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { type EndpointConnection, type ScriptedEndpoint, scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { type TestService, uidOf } from '../fixtures/tables.ts';
import { unresponsiveEndpoint } from '../fixtures/unresponsive-endpoint.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};
const HOST = 'Host: shop.example\r\n';
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const HEAD_END = /\r\n\r\n/;
/** The timeouts have a resolution of one second, and one more second is rounded up. */
const ROUNDING = 2;

/** Starts a worker that serves the endpoint over HTTP. */
async function serve(
  endpoint: ScriptedEndpoint,
  settings: TestService['settings'] = {},
): Promise<{ worker: WorkerInTest; connect: () => Promise<TestClient> }> {
  const worker = await startWorkerInTest(
    webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT], ...settings } }),
  );
  return { worker, connect: () => connectClient(worker) };
}

/** Waits until the worker has read everything that clients sent before: another client gets an answer of the proxy. */
async function untilRead(worker: WorkerInTest): Promise<void> {
  await using other = await connectClient(worker);
  await other.send('no request\r\n\r\n');
  assert.equal(await statusOf(other), 400);
  await other.end();
  await other.ended;
}

async function readHead(side: EndpointConnection): Promise<string> {
  let head = '';
  while (!head.endsWith('\r\n\r\n')) head += (await side.take(1)).toString('latin1');
  return head;
}

const statusOf = async (client: TestClient): Promise<number> =>
  Number((await client.take(HEAD_END)).toString('latin1').split(' ')[1]);

test('answers a head that is not complete after 10 seconds with 408, however often a byte arrives', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint);
  using _ = worker;
  await using client = await connect();
  await client.send('GET / HTTP/1.1\r\nX-Slow: ');
  await untilRead(worker);
  for (let second = 0; second < 9; second += 1) {
    worker.tick(1);
    await client.send('x');
    await untilRead(worker);
    assert.equal(client.received, 0);
  }
  worker.tick(ROUNDING);
  assert.equal(await statusOf(client), 408);
  assert.deepEqual(await client.ended, { kind: 'end' });
  assert.equal(refusalsIn(worker.row)['request-timeout'], 1);
  assert.equal(worker.row[ACTIVE], 1);
  // The client does not answer the FIN.
  worker.tick(4);
  assert.equal(worker.row[ACTIVE], 0);
});

test('answers the second head of a connection with 408 and a body, although the first request was HEAD', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint);
  using _ = worker;
  await using client = await connect();
  await client.send(GET.replace('GET', 'HEAD'));
  const side = await endpoint.next();
  await readHead(side);
  await side.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n');
  assert.equal(await statusOf(client), 200);
  await client.send('GET /');
  await untilRead(worker);
  worker.tick(10 + ROUNDING);
  assert.equal(await statusOf(client), 408);
  await client.take(/408 Request Timeout/);
  assert.deepEqual(await client.ended, { kind: 'end' });
});

test('ends a connection with FIN if no request begins', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint);
  using _ = worker;
  await using client = await connect();
  await untilRead(worker);
  worker.tick(10 + ROUNDING);
  assert.deepEqual(await client.ended, { kind: 'end' });
  worker.tick(4);
  assert.equal(worker.row[ACTIVE], 0);
});

test('answers a body that makes no progress within the idle timeout with 408', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint, { idleTimeoutMs: 5_000 });
  using _ = worker;
  await using client = await connect();
  await client.send(`POST / HTTP/1.1\r\nContent-Length: 100\r\n${HOST}\r\n`);
  const side = await endpoint.next();
  await readHead(side);
  for (let sent = 0; sent < 4; sent += 1) {
    worker.tick(4);
    await client.send('x');
    await side.take(1);
  }
  assert.equal(worker.row[ACTIVE], 1, 'the body made progress');
  worker.tick(5 + ROUNDING);
  assert.equal(await statusOf(client), 408);
  assert.deepEqual(await client.ended, { kind: 'end' });
  assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });
});

test('answers with 504 if the endpoint does not answer within the request timeout', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint, { requestTimeoutMs: 3_000 });
  using _ = worker;
  await using client = await connect();
  await client.send(GET);
  const side = await endpoint.next();
  await readHead(side);
  worker.tick(2);
  assert.equal(client.received, 0);
  worker.tick(ROUNDING);
  assert.equal(await statusOf(client), 504);
  assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });
});

test('resets a connection whose response began but is not complete within the request timeout', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint, { requestTimeoutMs: 3_000 });
  using _ = worker;
  await using client = await connect();
  await client.send(GET);
  const side = await endpoint.next();
  await readHead(side);
  await side.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n');
  assert.equal(await statusOf(client), 200);
  for (let second = 0; second < 2; second += 1) {
    worker.tick(1);
    await side.send('x');
    await client.take(1);
  }
  worker.tick(ROUNDING);
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });
  assert.deepEqual(worker.outcomes(), { 'response-timeout': 1 });
});

test('does not count the time between requests as request time', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint, { requestTimeoutMs: 3_000 });
  using _ = worker;
  await using client = await connect();
  await client.send(GET);
  const side = await endpoint.next();
  await readHead(side);
  await side.send(OK);
  await client.take(/ok$/);
  worker.tick(20);
  await client.send(GET);
  await readHead(side);
  worker.tick(2);
  await side.send(OK);
  assert.equal(await statusOf(client), 200);
});

test('a request that waits for bandwidth is not idle before ten idle timeouts have passed', async () => {
  await using endpoint = await scriptedEndpoint();
  const registry = new LimiterRegistry(1);
  const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
  registry.configure(rows[0], { ...UNLIMITED, inBitsPerSecond: 8 });
  registry.configure(rows[1], UNLIMITED);
  const service = webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT], idleTimeoutMs: 1_000 } });
  using worker = await startWorkerInTest(service, { limits: registry.addWorker(1) });
  worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
  await using client = await connectClient(worker);
  // At 8 bits per second, 2,000 bytes use up the limit for about half an hour.
  await client.send(`POST / HTTP/1.1\r\nContent-Length: 3000\r\n${HOST}\r\n${'x'.repeat(2_000)}`);
  const side = await endpoint.next();
  await readHead(side);
  await side.take(2_000);
  // An idle timeout of one second has surely passed after two ticks.
  worker.tick(2 * 10);
  assert.equal(client.received, 0);
  worker.tick(2);
  assert.equal(await statusOf(client), 408);
});

for (const { nearest, settings } of [
  { nearest: 'the request timeout', settings: { requestTimeoutMs: 3_000, idleTimeoutMs: 60_000 } },
  { nearest: 'the idle timeout', settings: { requestTimeoutMs: 60_000, idleTimeoutMs: 3_000 } },
]) {
  test(`answers with 504 at the end of ${nearest} if it is the nearest timeout`, async () => {
    await using endpoint = await scriptedEndpoint();
    const { worker, connect } = await serve(endpoint, settings);
    using _ = worker;
    await using client = await connect();
    await client.send(GET);
    await readHead(await endpoint.next());
    worker.tick(2);
    assert.equal(client.received, 0);
    worker.tick(ROUNDING);
    assert.equal(await statusOf(client), 504);
  });
}

for (const { nearest, settings } of [
  { nearest: 'the request timeout', settings: { requestTimeoutMs: 3_000, connectTimeoutMs: 60_000 } },
  { nearest: 'the connect timeout', settings: { requestTimeoutMs: 60_000, connectTimeoutMs: 3_000 } },
]) {
  test(`answers with 504 at the end of ${nearest} if an endpoint cannot be connected`, async () => {
    await using unresponsive = await unresponsiveEndpoint();
    using worker = await startWorkerInTest(
      webService([unresponsive.endpoint], { settings: { httpPorts: [PORT], ...settings } }),
    );
    await using client = await connectClient(worker);
    await client.send(GET);
    await untilRead(worker);
    worker.tick(2);
    assert.equal(client.received, 0);
    worker.tick(ROUNDING);
    assert.equal(await statusOf(client), 504);
  });
}

test('tries the next endpoint after each connect timeout', async () => {
  await using first = await unresponsiveEndpoint();
  await using second = await unresponsiveEndpoint();
  const settings = { httpPorts: [PORT], connectTimeoutMs: 3_000, algorithm: 'first' } as const;
  using worker = await startWorkerInTest(webService([first.endpoint, second.endpoint], { settings }));
  await using client = await connectClient(worker);
  await client.send(GET);
  await untilRead(worker);
  worker.tick(3 + ROUNDING);
  await untilRead(worker);
  assert.equal(client.received, 0, 'the second attempt has begun');
  worker.tick(3 + ROUNDING);
  assert.equal(await statusOf(client), 504);
});

test('ends a connection whose client reads nothing of a response for the idle timeout', async () => {
  await using endpoint = await scriptedEndpoint();
  const worker = await startWorkerInTest(
    webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT], idleTimeoutMs: 5_000 } }),
    { transport: epollTransport },
  );
  using _ = worker;
  await using client = await connectClient(worker);
  client.pause();
  await client.send(GET);
  const side = await endpoint.next();
  await readHead(side);
  const bytes = 16 * 2 ** 20;
  void side.send(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`).catch(() => undefined);
  await eventually(() => assert.ok((worker.row[UNACKNOWLEDGED] as number) > 0, 'the kernel has bytes for the client'));
  await untilNoMoreSent(worker);
  worker.tick(3);
  assert.equal(worker.row[ACTIVE], 1);
  worker.tick(2 + ROUNDING);
  assert.deepEqual(worker.outcomes()['idle-timeout'], 1);
  assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });
});

/** Waits until the client's kernel acknowledges no more bytes, because the client reads none. */
async function untilNoMoreSent(worker: WorkerInTest): Promise<void> {
  let sent = -1;
  await eventually(() => {
    const before = sent;
    worker.tick(1);
    sent = worker.row[SENT] as number;
    assert.equal(sent, before);
  });
}

test('the request timeout does not end a WebSocket', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint, { requestTimeoutMs: 3_000 });
  using _ = worker;
  await using client = await connect();
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  await client.send(`GET / HTTP/1.1\r\n${HOST}${upgrade}\r\n`);
  const side = await endpoint.next();
  await readHead(side);
  await side.send(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`);
  assert.equal(await statusOf(client), 101);
  worker.tick(20);
  await client.send('ping');
  assert.equal((await side.take(4)).toString(), 'ping');
  assert.ok((worker.row[RECEIVED] as number) > 0);
});

test('an HTTP/2 client without requests cannot keep its connection by parts of frames', async () => {
  await using endpoint = await scriptedEndpoint();
  const { worker, connect } = await serve(endpoint);
  using _worker = worker;
  await using client = await connect();
  const settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
  await client.send(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.from(settings)]));
  const ping = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await eventually(() => assert.ok(client.received > 0));
  let seconds = 0;
  for (let isOpen = true; isOpen && seconds < 200; seconds += 9) {
    const received = client.received;
    isOpen = await client.send(ping.subarray(0, 5)).then(
      () => true,
      () => false,
    );
    // The worker runs on this event loop, and so reads the first part of the frame alone.
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    if (isOpen) await client.send(ping.subarray(5)).catch(() => undefined);
    if (isOpen) await eventually(() => assert.ok(client.received > received || worker.row[ACTIVE] === 0));
    if (worker.row[ACTIVE] === 0) break;
    worker.tick(9);
  }
  assert.ok(seconds >= 9 && seconds <= 90, String(seconds));
});

test('the request timeout does not end a WebSocket of an HTTP/2 client', async (context) => {
  await using endpoint = await scriptedEndpoint();
  const { worker } = await serve(endpoint, { requestTimeoutMs: 3_000 });
  using _ = worker;
  const session = connectHttp2(`http://${worker.host}:${worker.port}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  await once(session, 'remoteSettings');
  const stream = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/' });
  stream.on('error', () => undefined);
  const side = await endpoint.next();
  const key = /sec-websocket-key: (.*)\r/i.exec(await readHead(side))?.[1];
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n`;
  await side.send(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`);
  await once(stream, 'response');
  worker.tick(20);
  stream.write('ping');
  assert.equal((await side.take(4)).toString(), 'ping');
});

test('answers the body of an HTTP/2 client with 408 if the client stalls, and with 504 if the endpoint does', async (context) => {
  await using endpoint = await scriptedEndpoint();
  const { worker } = await serve(endpoint, { idleTimeoutMs: 5_000 });
  using _ = worker;
  const session = connectHttp2(`http://${worker.host}:${worker.port}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  const stalled = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  stalled.on('error', () => undefined);
  stalled.write('x');
  const side = await endpoint.next();
  await side.take('\r\n\r\n1\r\nx\r\n');
  worker.tick(5 + ROUNDING);
  const [answer] = (await once(stalled, 'response')) as [IncomingHttpHeaders];
  assert.equal(answer[':status'], 408);
  assert.equal(refusalsIn(worker.row)['request-timeout'], 1);
  assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });

  const complete = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  complete.end('x');
  await (await endpoint.next()).take('\r\n0\r\n\r\n');
  worker.tick(5 + ROUNDING);
  const [late] = (await once(complete, 'response')) as [IncomingHttpHeaders];
  assert.equal(late[':status'], 504);
});
