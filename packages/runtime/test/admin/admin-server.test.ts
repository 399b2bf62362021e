import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import {
  type AdminRoute,
  type AdminServer,
  createAdminServer,
  formatHostPort,
  Health,
  ManualClock,
} from '../../src/index.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';

interface Started {
  readonly server: AdminServer;
  readonly health: Health;
  readonly clock: ManualClock;
  readonly url: string;
}

async function start(t: TestContext, routes: Record<string, AdminRoute> = {}): Promise<Started> {
  const health = new Health();
  const metrics = createMetrics();
  metrics.gauge({ name: 'up', help: 'Up.' }).set({}, 1);
  const clock = new ManualClock();
  const server = createAdminServer({ host: '127.0.0.1', port: 0, health, metrics, routes, clock });
  await server.start(new AbortController().signal);
  let isClosed = false;
  const close = server.close;
  server.close = () => {
    isClosed = true;
    return close();
  };
  t.after(() => (isClosed ? undefined : server.close()));
  return { server, health, clock, url: `http://${formatHostPort(server.address())}` };
}

async function answer(url: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url, { headers: { connection: 'close' } });
  return { status: response.status, body: await response.json() };
}

test('responds to probes with 200 if healthy, otherwise 503 with the reasons', async (t) => {
  const { health, url } = await start(t);
  assert.deepEqual(await answer(`${url}/healthz`), { status: 200, body: { live: true, reasons: [] } });
  assert.deepEqual(await answer(`${url}/readyz`), { status: 200, body: { ready: true, reasons: [] } });
  health.add('store', 'ready', () => 'away');
  const reasons = [{ check: 'store', affects: 'ready', reason: 'away' }];
  assert.deepEqual(await answer(`${url}/healthz`), { status: 200, body: { live: true, reasons } });
  assert.deepEqual(await answer(`${url}/readyz`), { status: 503, body: { ready: false, reasons } });
});

test('serves metrics in the Prometheus text format', async (t) => {
  const { url } = await start(t);
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  assert.match(await response.text(), /^up 1$/m);
});

test('passes the query to routes and responds with JSON', async (t) => {
  const { url } = await start(t, {
    '/connections': async (query) => ({ service: query.get('service') }),
    '/nothing': () => undefined,
  });
  assert.deepEqual(await answer(`${url}/connections?service=shop%2Fweb`), {
    status: 200,
    body: { service: 'shop/web' },
  });
  assert.deepEqual(await answer(`${url}/nothing`), { status: 200, body: null });
});

test('lists the known paths for an unknown path', async (t) => {
  const { url } = await start(t, { '/connections': () => [] });
  const paths = ['/healthz', '/readyz', '/metrics', '/connections'];
  assert.deepEqual(await answer(`${url}/toString`), { status: 404, body: { error: 'unknown path /toString', paths } });
});

test('responds with 500 and the message if a route throws, and keeps serving', async (t) => {
  const { url } = await start(t, {
    '/bad': () => Promise.reject(new Error('no such worker')),
    '/odd': () => ({ count: 1n }),
  });
  assert.deepEqual(await answer(`${url}/bad`), { status: 500, body: { error: 'no such worker' } });
  assert.equal((await answer(`${url}/odd`)).status, 500);
  assert.equal((await answer(`${url}/healthz`)).status, 200);
});

test('refuses methods other than GET and HEAD', async (t) => {
  const { url } = await start(t);
  const response = await fetch(`${url}/healthz`, { method: 'POST', body: 'x' });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get('allow'), 'GET, HEAD');
  await response.text();
  const head = request(`${url}/healthz`, { method: 'HEAD', agent: false }).end();
  const [answered] = (await once(head, 'response')) as [IncomingMessage];
  assert.equal(answered.statusCode, 200);
  assert.equal(await text(answered), '');
});

test('refuses a request target that is not a path', async (t) => {
  const { server } = await start(t);
  const socket = connect(server.address());
  socket.end('GET http://elsewhere/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  assert.match(await text(socket), /^HTTP\/1\.1 400 /);
});

test('close ends idle keep-alive connections at once', async (t) => {
  const { server, url } = await start(t);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const [response] = (await once(get(`${url}/healthz`, { agent }), 'response')) as [IncomingMessage];
  const ended = once(response.socket, 'close');
  await json(response);
  await server.close();
  await ended;
});

test('close lets a response in progress finish and terminates a slower response after a second', async (t) => {
  const asked = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<string>();
  const { server, clock, url } = await start(t, {
    '/slow': (query) => {
      if (query.has('last')) asked.resolve();
      return query.has('last') ? new Promise(() => {}) : finish.promise;
    },
  });
  const slow = answer(`${url}/slow`);
  const stuck = answer(`${url}/slow?last`).catch((error: unknown) => error);
  await asked.promise;
  const closed = server.close();
  finish.resolve('done');
  assert.deepEqual(await slow, { status: 200, body: 'done' });
  await clock.advance(1000);
  await closed;
  assert.ok((await stuck) instanceof TypeError);
});

test('creates metrics at the scrape if a function is given', async (t) => {
  let asked = 0;
  const metrics = async () => {
    asked += 1;
    return createMetrics();
  };
  const server = createAdminServer({ host: '127.0.0.1', port: 0, health: new Health(), metrics });
  await server.start(new AbortController().signal);
  t.after(() => server.close());
  const url = `http://${formatHostPort(server.address())}`;
  await answer(`${url}/healthz`);
  assert.equal(asked, 0);
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  assert.match(await response.text(), /weir_metrics_dropped_total/);
  assert.equal(asked, 1);
});

test('explains a port in use', async (t) => {
  const otherServer = createServer().listen(0, '127.0.0.1');
  await once(otherServer, 'listening');
  t.after(() => otherServer.close());
  const { port } = otherServer.address() as AddressInfo;
  const server = createAdminServer({
    host: '127.0.0.1',
    port,
    health: new Health(),
    metrics: createMetrics(),
    advice: 'set WEIR_ADMIN to a free HOST:PORT or off',
  });
  await assert.rejects(async () => server.start(new AbortController().signal), {
    code: 'LISTEN_FAILED',
    message: `cannot listen on 127.0.0.1:${port}: the port is in use by another process; set WEIR_ADMIN to a free HOST:PORT or off`,
  });
});

test('limits new connections per second and serves connections after the limit has passed', async (t) => {
  const { server, clock, url } = await start(t);
  const { host, port } = server.address();
  const isAnswered = async (): Promise<boolean> => {
    const socket = connect({ host, port });
    socket.on('error', () => undefined);
    socket.end('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    return (await text(socket).catch(() => '')).startsWith('HTTP/1.1 200 ');
  };
  let answered = 0;
  for (let asked = 0; asked < 250; asked += 1) answered += (await isAnswered()) ? 1 : 0;
  assert.equal(answered, 200);
  await clock.advance(1_000);
  assert.equal((await answer(`${url}/healthz`)).status, 200);
});
