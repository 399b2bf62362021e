// Tests which endpoint gets the requests of a client with a sticky cookie, or with the affinity ClientIP.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { type Endpoint, endpointKey } from '@weir/model';
import { connectClient, eventually } from '@weir/testkit';
import { FLEET_SECRET } from '../fixtures/certificates.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const ENDPOINTS = 4;
const HEAD_END = /\r\n\r\n/;

/** Endpoints that answer with their own address and the cookies that they have received. */
const servers: Server[] = [];
const endpoints: Endpoint[] = [];
before(async () => {
  for (let index = 0; index < ENDPOINTS; index += 1) {
    const server = createServer((request, response) => {
      const { port } = server.address() as AddressInfo;
      response.end(`${endpointKey({ address: '127.0.0.1', port })} ${request.headers.cookie ?? 'none'}`);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    endpoints.push({ address: '127.0.0.1', port: (server.address() as AddressInfo).port });
  }
});
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

interface Answer {
  readonly endpoint: string;
  /** The cookies that the endpoint has received. */
  readonly seen: string;
  /** The value of Set-Cookie, if any. */
  readonly setCookie: string | undefined;
  /** The cookie in the form of the field Cookie. */
  readonly cookie: string;
}

/** Sends one request on a new connection. */
async function ask(proxy: { readonly host: string; readonly port: number }, cookie?: string): Promise<Answer> {
  await using client = await connectClient(proxy);
  const field = cookie === undefined ? '' : `Cookie: ${cookie}\r\n`;
  await client.send(`GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n${field}\r\n`);
  const head = (await client.take(HEAD_END)).toString('latin1');
  assert.match(head, /^HTTP\/1\.1 200 /);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
  const [endpoint = '', ...seen] = (await client.take(length)).toString('latin1').split(' ');
  const setCookie = /^set-cookie: (.*)\r$/im.exec(head)?.[1];
  return { endpoint, seen: seen.join(' '), setCookie, cookie: setCookie?.split(';')[0] ?? '' };
}

function sessionTo(
  context: TestContext,
  { host, port }: { readonly host: string; readonly port: number },
): ClientHttp2Session {
  const session = connectHttp2(`http://${host}:${port}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  return session;
}

/** Sends one request of HTTP/2. Each cookie is a field of its own (RFC 9113 §8.2.3). */
async function askHttp2(session: ClientHttp2Session, cookies: string[] = []): Promise<Answer> {
  const stream = session.request({ ':path': '/', ...(cookies.length > 0 && { cookie: cookies }) });
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  assert.equal(headers[':status'], 200);
  const body = Buffer.concat(await stream.toArray()).toString();
  const [endpoint = '', ...seen] = body.split(' ');
  const setCookie = headers['set-cookie']?.[0];
  return { endpoint, seen: seen.join(' '), setCookie, cookie: setCookie?.split(';')[0] ?? '' };
}

const stickyService = (settings: TestService['settings'] = {}, served = endpoints): TestService =>
  webService(served, { settings: { httpPorts: [PORT], algorithm: 'round-robin', stickyCookie: 'shop', ...settings } });

test('sends the requests with a sticky cookie to the endpoint of the first request, and hides the cookie', async () => {
  using worker = await startWorkerInTest(stickyService());
  const first = await ask(worker);
  assert.match(first.setCookie ?? '', /^shop=[\w-]{22}; Path=\/; HttpOnly$/);
  for (let request = 0; request < 2 * ENDPOINTS; request += 1) {
    const next = await ask(worker, `a=b; ${first.cookie}; c=d`);
    assert.deepEqual(next, { endpoint: first.endpoint, seen: 'a=b; c=d', setCookie: undefined, cookie: '' });
  }
  const others = await Promise.all(Array.from({ length: 2 * ENDPOINTS }, () => ask(worker)));
  assert.equal(new Set(others.map(({ endpoint }) => endpoint)).size, ENDPOINTS, 'clients without the cookie');
  assert.equal(new Set(others.map(({ cookie }) => cookie)).size, ENDPOINTS);
});

test('sends each HTTP/2 request with a sticky cookie to the endpoint of the cookie, and hides the cookie', async (context) => {
  using worker = await startWorkerInTest(stickyService());
  const session = sessionTo(context, worker);
  const first = await askHttp2(session);
  assert.match(first.setCookie ?? '', /^shop=[\w-]{22}; Path=\/; HttpOnly$/);
  const others = await Promise.all(Array.from({ length: 2 * ENDPOINTS }, () => askHttp2(session)));
  assert.equal(new Set(others.map(({ endpoint }) => endpoint)).size, ENDPOINTS, 'requests without the cookie');
  const cookies = ['a=b', first.cookie, 'c=d'];
  const next = await Promise.all(Array.from({ length: 2 * ENDPOINTS }, () => askHttp2(session, cookies)));
  for (const answer of next)
    assert.deepEqual(answer, { endpoint: first.endpoint, seen: 'a=b; c=d', setCookie: undefined, cookie: '' });
  // Clients of both versions share the cookie.
  assert.equal((await ask(worker, first.cookie)).endpoint, first.endpoint);
});

test('sets the cookie anew if its value names no endpoint', async () => {
  using worker = await startWorkerInTest(stickyService());
  for (const cookie of ['shop=', 'shop=127.0.0.1', `shop=${'A'.repeat(22)}`]) {
    const answer = await ask(worker, cookie);
    assert.match(answer.cookie, /^shop=[\w-]{22}$/);
    assert.equal(answer.seen, 'none');
    assert.equal((await ask(worker, answer.cookie)).endpoint, answer.endpoint);
  }
});

test('chooses another endpoint, with a new cookie, while the endpoint is unhealthy or after it has left', async () => {
  using worker = await startWorkerInTest(stickyService());
  const { endpoint, cookie } = await ask(worker);
  const setExcluded = (keys: readonly string[]): void =>
    worker.apply({ kind: 'health', listeners: [worker.listener.key], excluded: keys, failing: keys, draining: [] });
  setExcluded([endpoint]);
  const moved = await ask(worker, cookie);
  assert.notEqual(moved.endpoint, endpoint);
  assert.notEqual(moved.cookie, '');
  setExcluded([]);
  assert.equal((await ask(worker, cookie)).endpoint, endpoint);
  worker.serve(
    stickyService(
      {},
      endpoints.filter((one) => endpointKey(one) !== endpoint),
    ),
  );
  const left = await ask(worker, cookie);
  assert.notEqual(left.endpoint, endpoint);
  assert.equal((await ask(worker, left.cookie)).endpoint, left.endpoint);
});

test('proxies and workers with the same fleet secret agree about the cookie, also after a restart', async () => {
  await using fleet = await startFleet({ nodes: ['a', 'b'] });
  await fleet.serve(stickyService());
  const options = { fleetSecret: FLEET_SECRET, workers: 2 };
  const proxyA = await fleet.proxy({ ...options, node: 'a' });
  const proxyB = await fleet.proxy({ ...options, node: 'b' });
  await Promise.all([proxyA.ready, proxyB.ready]);
  const at = (node: string): { host: string; port: number } => ({ host: fleet.addressOf(node), port: PORT });
  const first = await ask(at('a'));
  for (let request = 0; request < 2 * ENDPOINTS; request += 1)
    for (const node of ['a', 'b']) assert.equal((await ask(at(node), first.cookie)).endpoint, first.endpoint);
  await proxyA.close({ drainMs: 0 });
  await (await fleet.proxy({ ...options, node: 'a' })).ready;
  const restarted = await eventually(() => ask(at('a'), first.cookie));
  assert.deepEqual([restarted.endpoint, restarted.setCookie], [first.endpoint, undefined]);
});

test('the workers of a proxy without a fleet secret agree about the cookie', async () => {
  await using fleet = await startFleet();
  await fleet.serve(stickyService());
  await (await fleet.proxy({ workers: 2 })).ready;
  const proxy = { host: fleet.addressOf(), port: PORT };
  const first = await ask(proxy);
  for (let request = 0; request < 4 * ENDPOINTS; request += 1) {
    const { endpoint, setCookie } = await ask(proxy, first.cookie);
    assert.deepEqual([endpoint, setCookie], [first.endpoint, undefined]);
  }
});

test('ClientIP affinity sends the requests of a client to one endpoint', async (context) => {
  await using fleet = await startFleet();
  const affinity = { kind: 'client-ip', timeoutMs: 60_000 } as const;
  const { stickyCookie: _, ...settings } = stickyService({ affinity }).settings ?? {};
  await fleet.serve(webService(endpoints, { settings }));
  await (await fleet.proxy({ workers: 2 })).ready;
  const proxy = { host: fleet.addressOf(), port: PORT };
  const first = await ask(proxy);
  assert.equal(first.setCookie, undefined);
  for (let request = 0; request < 2 * ENDPOINTS; request += 1)
    assert.equal((await ask(proxy)).endpoint, first.endpoint);
  // Requests of one connection.
  await using client = await connectClient(proxy);
  for (let request = 0; request < ENDPOINTS; request += 1) {
    await client.send('GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n');
    await client.take(HEAD_END);
    assert.equal((await client.take(first.endpoint.length)).toString('latin1'), first.endpoint);
    await client.take(/ none/);
  }
  const session = sessionTo(context, proxy);
  const answers = await Promise.all(Array.from({ length: 2 * ENDPOINTS }, () => askHttp2(session)));
  assert.deepEqual([...new Set(answers.map(({ endpoint }) => endpoint))], [first.endpoint]);
});
