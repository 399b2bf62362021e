// Tests which Service gets each request at a listener that Services share, and what the endpoint receives.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import type { RunningProxy } from '../../../src/index.ts';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

/** An endpoint that answers with its name, the Host and the target that it has received. */
class NamedServer implements AsyncDisposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(name: string): Promise<NamedServer> {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.end(`${name} ${request.headers.host} ${request.url}`));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new NamedServer(server);
  }

  get endpoint(): { address: string; port: number } {
    return { address: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly closes: boolean;
  /** The length of the whole response. */
  readonly bytes: number;
}

/** Sends a request, and resolves with the response, whose body has a Content-Length. */
async function ask(client: TestClient, request: string): Promise<Answer> {
  await client.send(request);
  let head = '';
  while (!head.endsWith('\r\n\r\n')) head += (await client.take(1)).toString('latin1');
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const body = length === 0 ? '' : (await client.take(length)).toString('latin1');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
  return { status, body, closes: /^connection: close/im.test(head), bytes: head.length + length };
}

const get = (host: string, path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

function httpService(name: string, { endpoint }: NamedServer, over: Partial<TestService> = {}): TestService {
  const { settings, ...rest } = over;
  return {
    name,
    port: PORT,
    endpoints: [endpoint],
    shared: true,
    ...rest,
    settings: { httpPorts: [PORT], ...settings },
  };
}

/** The number of open connections of all Services. */
const activeIn = (proxy: RunningProxy): number => proxy.view().services.reduce((sum, { active }) => sum + active, 0);

const connectTo = (fleet: Fleet, more: object = {}): Promise<TestClient> =>
  connectClient({ host: fleet.addressOf(), port: PORT, ...more });

test('serves the requests of one connection by host and path prefix, and counts them for their Services', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await using blog = await NamedServer.start('blog');
  const proxy = await startServing(
    fleet,
    httpService('web', web, { settings: { hosts: ['shop.example'] } }),
    httpService('api', api, { settings: { hosts: ['shop.example'], pathPrefix: '/api', stripPrefix: true } }),
    httpService('blog', blog, { namespace: 'other', settings: { hosts: ['*.blog.example'] } }),
  );
  await using client = await connectTo(fleet);
  const usage: Record<string, { receivedBytes: number; sentBytes: number; requests: number }> = {};
  const cases: readonly (readonly [request: string, service: string, body: string])[] = [
    [get('shop.example'), 'web', 'web shop.example /'],
    [get('Shop.Example:80', '/api/items?q=1'), 'api', 'api shop.example:80 /items?q=1'],
    [get('shop.example', '/apiary'), 'web', 'web shop.example /apiary'],
    [get('shop.example', '/%61pi'), 'api', 'api shop.example /'],
    [get('shop.example', '/x/../api/./y'), 'api', 'api shop.example /y'],
    [get('a.blog.example', '/post'), 'blog', 'blog a.blog.example /post'],
    [get('shop.example', 'http://shop.example/api/z'), 'api', 'api shop.example /z'],
    [
      'POST /api/up HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'api',
      'api shop.example /up',
    ],
    [get('shop.example', '/last'), 'web', 'web shop.example /last'],
  ];
  for (const [request, service, body] of cases) {
    const answer = await ask(client, request);
    assert.deepEqual([answer.status, answer.body, answer.closes], [200, body, false], request);
    const sum = usage[service] ?? { receivedBytes: 0, sentBytes: 0, requests: 0 };
    usage[service] = {
      receivedBytes: sum.receivedBytes + request.length,
      sentBytes: sum.sentBytes + answer.bytes,
      requests: sum.requests + 1,
    };
  }
  await client.end();
  await eventually(async () => {
    const counted = await fleet.usage();
    for (const [name, expected] of Object.entries(usage)) {
      const { receivedBytes, sentBytes, requests } = counted[name] ?? {};
      assert.deepEqual({ receivedBytes, sentBytes, requests }, expected, name);
    }
  });
  assert.equal(activeIn(proxy), 0);
});

test('serves a request whose head arrives in parts after a request for another Service', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await startServing(
    fleet,
    httpService('web', web, { settings: { hosts: ['shop.example'] } }),
    httpService('api', api, { settings: { hosts: ['api.example'] } }),
  );
  await using client = await connectTo(fleet);
  await client.send('GET / HTTP/1.1\r\nHo');
  assert.equal((await ask(client, 'st: shop.example\r\n\r\n')).body, 'web shop.example /');
  await client.send('POST /a HTTP/1.1\r\nHost: api.exa');
  const rest = 'mple\r\nContent-Length: 4\r\n\r\nbody';
  assert.equal((await ask(client, rest)).body, 'api api.example /a');
  // Three requests for two Services in one segment.
  await client.send(get('shop.example', '/1') + get('api.example', '/2') + get('shop.example', '/3'));
  assert.equal((await ask(client, '')).body, 'web shop.example /1');
  assert.equal((await ask(client, '')).body, 'api api.example /2');
  assert.equal((await ask(client, '')).body, 'web shop.example /3');
  // The end of a line after a request for another Service counts for that Service.
  await client.send('\r');
  assert.equal((await ask(client, `\n${get('api.example', '/4')}`)).body, 'api api.example /4');
  await client.end();
  await eventually(async () => {
    const { web: webUsage, api: apiUsage } = await fleet.usage();
    assert.deepEqual([webUsage?.requests, apiUsage?.requests], [3, 3]);
    const apiBytes = 'POST /a HTTP/1.1\r\nHost: api.exa'.length + rest.length + 2 * get('api.example', '/2').length;
    assert.equal(apiUsage?.receivedBytes, apiBytes);
    assert.equal(webUsage?.receivedBytes, get('shop.example').length + 2 * get('shop.example', '/1').length + 2);
  });
});

test('answers requests that no Service gets', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await startServing(
    fleet,
    httpService('web', web, { settings: { hosts: ['shop.example'], pathPrefix: '/shop' } }),
    httpService('api', api, { settings: { hosts: ['api.example'] } }),
  );
  for (const first of [get('unknown.example'), get('shop.example', '/'), 'GET / HTTP/1.0\r\n\r\n']) {
    await using client = await connectTo(fleet);
    const { status, closes } = await ask(client, first);
    assert.deepEqual([status, closes], [404, true], first);
    assert.deepEqual(await client.ended, { kind: 'end' });
  }
  for (const wrong of ['nonsense\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', get('shop.example', '/%00'), get('a b')]) {
    await using client = await connectTo(fleet);
    assert.equal((await ask(client, wrong)).status, 400, wrong);
    assert.deepEqual(await client.ended, { kind: 'end' });
  }
  await using kept = await connectTo(fleet);
  assert.equal((await ask(kept, get('api.example'))).status, 200);
  const notFound = await ask(kept, get('shop.example', '/x'));
  assert.deepEqual([notFound.status, notFound.closes], [404, false]);
  assert.equal((await ask(kept, get('shop.example', '/shop/x'))).body, 'web shop.example /shop/x');
});

test('answers with 403 for a suspended Service, and serves the other Services of the listener', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await startServing(
    fleet,
    httpService('web', web, { settings: { hosts: ['shop.example'] } }),
    httpService('api', api, { namespace: 'other', settings: { hosts: ['api.example'] } }),
  );
  await using open = await connectTo(fleet);
  assert.equal((await ask(open, get('api.example'))).status, 200);
  await using moved = await connectTo(fleet);
  assert.equal((await ask(moved, get('shop.example'))).status, 200);
  await fleet.cutOff({ kind: 'namespace', namespace: 'other' });
  assert.deepEqual(await open.ended, { kind: 'error', code: 'ECONNRESET' });
  assert.deepEqual(
    [(await ask(moved, get('api.example'))).status, (await ask(moved, get('shop.example'))).status],
    [403, 200],
  );
  await using fresh = await connectTo(fleet);
  assert.equal((await ask(fresh, get('api.example'))).status, 403);
  // The open connection, the first request of the new connection, and the later request of the other connection.
  await eventually(async () => assert.deepEqual((await fleet.usage()).api?.refused, { 'cut-off': 2, suspended: 1 }));
});

test('answers with 421 on a TLS connection for a Service with another certificate', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await using blog = await NamedServer.start('blog');
  const tls = terminatingTls();
  const overTls = (name: string, server: NamedServer, over: Partial<TestService>): TestService =>
    httpService(name, server, { ...tls, ...over, settings: { ...tls.settings, ...over.settings } });
  await fleet.serve(
    overTls('web', web, { settings: { hosts: ['web.example'] } }),
    overTls('api', api, { settings: { hosts: ['web.example'], pathPrefix: '/api' } }),
    overTls('blog', blog, { namespace: 'other', settings: { hosts: ['game.example'] } }),
  );
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  await using client = await connectTo(fleet, { tls: { ...TRUSTING_CLIENT, servername: 'web.example' } });
  assert.equal((await ask(client, get('web.example', '/a'))).body, 'web web.example /a');
  assert.equal((await ask(client, get('web.example', '/api/b'))).body, 'api web.example /api/b');
  assert.equal((await ask(client, get('game.example'))).status, 421);
  assert.equal((await ask(client, get('unknown.example'))).status, 421);
  assert.equal((await ask(client, get('web.example', '/c'))).body, 'web web.example /c');
});

test('serves a host over TLS although one of the Services that share the host is suspended or has no endpoint', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  const tls = terminatingTls();
  const overTls = (name: string, server: NamedServer, over: Partial<TestService>): TestService =>
    httpService(name, server, {
      ...tls,
      ...over,
      settings: { ...tls.settings, hosts: ['web.example'], ...over.settings },
    });
  const tlsClient = { tls: { ...TRUSTING_CLIENT, servername: 'web.example' } };
  const withApi = (over: Partial<TestService>): TestService =>
    overTls('api', api, { settings: { pathPrefix: '/api' }, ...over });
  await fleet.serve(overTls('web', web, {}), withApi({ endpoints: [] }));
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  {
    await using client = await connectTo(fleet, tlsClient);
    assert.equal((await ask(client, get('web.example', '/a'))).body, 'web web.example /a');
    assert.equal((await ask(client, get('web.example', '/api/b'))).status, 503);
    assert.equal((await ask(client, get('web.example', '/c'))).body, 'web web.example /c');
  }
  await fleet.serve(overTls('web', web, {}), withApi({}));
  await fleet.cutOff({ kind: 'service', namespace: 'shop', service: 'web' });
  await eventually(async () => {
    await using client = await connectTo(fleet, tlsClient);
    assert.equal((await ask(client, get('web.example', '/api/b'))).body, 'api web.example /api/b');
    assert.equal((await ask(client, get('web.example', '/a'))).status, 403);
  });
});

test('follows changes of the table between the requests of one connection', async () => {
  await using fleet = await startFleet();
  await using first = await NamedServer.start('first');
  await using second = await NamedServer.start('second');
  const anchor = httpService('anchor', first, { settings: { hosts: ['anchor.example'] } });
  const shop = { settings: { hosts: ['shop.example'] } };
  await startServing(fleet, anchor, httpService('web', first, shop));
  await using client = await connectTo(fleet);
  const bodies = async (): Promise<string[]> => [
    (await ask(client, get('anchor.example'))).body.slice(0, 6),
    (await ask(client, get('shop.example'))).body.slice(0, 6),
  ];
  assert.deepEqual(await bodies(), ['first ', 'first ']);
  await fleet.serve(anchor, httpService('web', second, shop));
  await eventually(async () => assert.deepEqual(await bodies(), ['first ', 'second'], 'new endpoints'));
  await fleet.serve(anchor, httpService('api', first, shop));
  await eventually(async () => assert.deepEqual(await bodies(), ['first ', 'first '], 'another Service'));
  await fleet.serve(anchor);
  await eventually(async () => assert.equal((await ask(client, get('shop.example'))).status, 404));
});

test('answers with 404 for other hosts and paths at a listener of one Service', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  const settings = { hosts: ['web.example'], pathPrefix: '/shop' };
  await startServing(fleet, httpService('web', web, { shared: false, settings }));
  await using client = await connectTo(fleet);
  assert.equal((await ask(client, get('web.example', '/shop'))).body, 'web web.example /shop');
  assert.equal((await ask(client, get('web.example', '/'))).status, 404);
  assert.equal((await ask(client, get('other.example', '/shop'))).status, 404);
  assert.equal((await ask(client, get('web.example', '/shop/2'))).body, 'web web.example /shop/2');
});

test('counts a connection that moves between Services of one tenant once for the limit of the tenant', async () => {
  await using fleet = await startFleet();
  await using web = await NamedServer.start('web');
  await using api = await NamedServer.start('api');
  await using blog = await NamedServer.start('blog');
  fleet.limit('shop', { connections: 1 });
  fleet.limit('other', { connections: 0 });
  const proxy = await startServing(
    fleet,
    httpService('web', web, { settings: { hosts: ['shop.example'] } }),
    httpService('api', api, { settings: { hosts: ['api.example'] } }),
    httpService('blog', blog, { namespace: 'other', settings: { hosts: ['blog.example'] } }),
  );
  for (let round = 0; round < 3; round += 1) {
    await using client = await connectTo(fleet);
    for (const host of ['shop.example', 'api.example', 'api.example', 'shop.example'])
      assert.equal((await ask(client, get(host))).status, 200, host);
    await using second = await connectTo(fleet);
    assert.equal((await ask(second, get('api.example'))).status, 503, 'the first connection is still counted');
    const { status, body } = await ask(client, get('blog.example'));
    assert.equal(status, 503, 'another tenant has its own limit');
    assert.match(body, /too many open connections/);
    assert.equal((await ask(client, get('api.example'))).status, 200);
    await client.end();
    await client.ended;
    await eventually(() => assert.equal(activeIn(proxy), 0));
  }
  // A connection and a request that the same limit refuses count with the same reason.
  await eventually(async () => {
    const { api: refusedClients, blog: refusedRequests } = await fleet.usage();
    const refused = { 'connection-limit': 3 };
    assert.deepEqual([refusedClients?.refused, refusedRequests?.refused], [refused, refused]);
  });
});
