// Tests the limits of requests: their rate, and the size of their bodies.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { refusalsIn } from '../fixtures/http-worker.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';
import { type TestService, uidOf } from '../fixtures/tables.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const HEAD_END = /\r\n\r\n/;
const get = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const post = (framing: string, body = ''): string =>
  `POST / HTTP/1.1\r\nHost: shop.example\r\n${framing}\r\n\r\n${body}`;

/** Sends a request, and resolves with the head and the body of the answer, which has a Content-Length. */
async function ask(client: TestClient, request: string): Promise<{ status: number; head: string; body: string }> {
  await client.send(request);
  const head = (await client.take(HEAD_END)).toString('latin1');
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const body = length === 0 ? '' : (await client.take(length)).toString('latin1');
  return { status: Number(head.split(' ')[1]), head, body };
}

/** An endpoint that answers with the length of the body. Records the lengths of complete bodies. */
const received: number[] = [];
const server: Server = createServer((request, response) => {
  let bytes = 0;
  request.on('data', (part: Buffer) => {
    bytes += part.length;
  });
  request.on('error', () => undefined);
  request.on('end', () => {
    received.push(bytes);
    response.end(`${bytes}`);
  });
});
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  received.length = 0;
});

function httpService(over: Partial<TestService> = {}): TestService {
  const { settings, ...rest } = over;
  const endpoint = { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
  return webService([endpoint], { ...rest, settings: { httpPorts: [PORT], ...settings } });
}

const connectTo = (fleet: Fleet): Promise<TestClient> => connectClient({ host: fleet.addressOf(), port: PORT });
const NO_LIMITS = { connections: null, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };

describe('the rate of requests', () => {
  test('answers requests above the rate of the tenant with 429, and keeps the connection', async () => {
    await using fleet = await startFleet();
    // At this rate no token comes back during the test, except one at the start of each second.
    fleet.limit('shop', { requestsPerSecond: 3 });
    await startServing(fleet, httpService());
    await using client = await connectTo(fleet);
    const answers = await askUntilRefused(client, get('shop.example'));
    assert.ok(answers.length > 3);
    const { head, body } = answers.at(-1) ?? assert.fail();
    assert.match(head, /^retry-after: 1\r$/im);
    assert.doesNotMatch(head, /^connection: close/im);
    assert.match(body, /too many requests/);
    assert.equal(received.length, answers.length - 1, 'the refused request reached no endpoint');
    // The client waits as long as it was told, and gets answers on the same connection.
    await eventually(async () => assert.equal((await ask(client, get('shop.example'))).status, 200));
  });

  test('answers HTTP/2 requests above the rate of the tenant with 429, and keeps the connection', async (context) => {
    await using fleet = await startFleet();
    fleet.limit('shop', { requestsPerSecond: 3 });
    await startServing(fleet, httpService());
    const session = connectHttp2(`http://${fleet.addressOf()}:${PORT}`);
    session.on('error', () => undefined);
    context.after(() => session.destroy());
    const askHttp2 = async (): Promise<{ headers: IncomingHttpHeaders; body: string }> => {
      const stream = session.request({ ':path': '/' });
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      return { headers, body: Buffer.concat(await stream.toArray()).toString() };
    };
    const answers = await Promise.all(Array.from({ length: 50 }, askHttp2));
    const refused = answers.filter(({ headers }) => Number(headers[':status']) === 429);
    assert.ok(refused.length > 0 && refused.length < 50, `${refused.length} of 50 requests were refused`);
    assert.equal(received.length, 50 - refused.length, 'the refused requests reached no endpoint');
    for (const { headers, body } of refused) {
      assert.equal(headers['retry-after'], '1');
      assert.match(body, /too many requests/);
    }
    await eventually(async () => assert.equal((await askHttp2()).headers[':status'], 200));
  });

  test('refuses every request at the rate 0, and ends a connection whose body was not read', async () => {
    await using fleet = await startFleet();
    await startServing(fleet, httpService({ settings: { limits: { ...NO_LIMITS, requestsPerSecond: 0 } } }));
    await using client = await connectTo(fleet);
    assert.equal((await ask(client, get('shop.example'))).status, 429);
    const empty = await ask(client, post('Content-Length: 0'));
    assert.equal(empty.status, 429);
    assert.doesNotMatch(empty.head, /^connection: close/im);
    const refused = await ask(client, post('Content-Length: 4', 'body'));
    assert.equal(refused.status, 429);
    assert.match(refused.head, /^connection: close\r$/im);
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.deepEqual(received, []);
  });

  test('counts the refused requests of the Service by their reason', async () => {
    const registry = new LimiterRegistry(1);
    const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
    const none = Number.POSITIVE_INFINITY;
    const unlimited = {
      connections: none,
      newConnectionsPerSecond: none,
      inBitsPerSecond: none,
      outBitsPerSecond: none,
    };
    registry.configure(rows[0], { ...unlimited, requestsPerSecond: none });
    registry.configure(rows[1], { ...unlimited, requestsPerSecond: 0 });
    const service = httpService();
    using worker = await startWorkerInTest(service, { limits: registry.addWorker(1) });
    worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
    await using client = await connectClient(worker);
    for (let request = 0; request < 3; request += 1) assert.equal((await ask(client, get('shop.example'))).status, 429);
    assert.deepEqual(refusalsIn(worker.row), { 'too-many-requests': 3 });
    registry.configure(rows[1], { ...unlimited, requestsPerSecond: none });
    assert.equal((await ask(client, get('shop.example'))).status, 200, 'a new limit applies to open connections');
  });

  test('limits the requests of one connection by the limits of their own Services', async () => {
    await using fleet = await startFleet();
    fleet.limit('shop', { requestsPerSecond: 1_000 });
    await startServing(
      fleet,
      httpService({ name: 'web', shared: true, settings: { hosts: ['shop.example'] } }),
      httpService({
        name: 'api',
        shared: true,
        settings: { hosts: ['api.example'], limits: { ...NO_LIMITS, requestsPerSecond: 0 } },
      }),
      httpService({ name: 'blog', namespace: 'blog', shared: true, settings: { hosts: ['blog.example'] } }),
    );
    await using client = await connectTo(fleet);
    const statuses: number[] = [];
    for (const host of ['shop.example', 'api.example', 'blog.example', 'api.example', 'shop.example'])
      statuses.push((await ask(client, get(host))).status);
    assert.deepEqual(statuses, [200, 429, 200, 429, 200]);
  });
});

async function askUntilRefused(client: TestClient, request: string): Promise<Awaited<ReturnType<typeof ask>>[]> {
  const answers: Awaited<ReturnType<typeof ask>>[] = [];
  while (answers.at(-1)?.status !== 429) answers.push(await ask(client, request));
  return answers;
}

describe('the size of bodies', () => {
  const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;
  let fleet: Fleet;
  before(async () => {
    fleet = await startFleet();
    await startServing(fleet, httpService({ settings: { maxBodyBytes: 1_000 } }));
  });
  after(() => fleet[Symbol.asyncDispose]());

  for (const { name, request, status, bodies } of [
    {
      name: 'a body of the greatest length',
      request: post('Content-Length: 1000', 'x'.repeat(1_000)),
      bodies: [1_000],
    },
    { name: 'a Content-Length above the limit', request: post('Content-Length: 1001'), status: 413 },
    {
      name: 'an announced body above the limit',
      request: post('Expect: 100-continue\r\nContent-Length: 1001'),
      status: 413,
    },
    {
      name: 'chunks of the greatest length together',
      request: post('Transfer-Encoding: chunked', `${chunk(400)}${chunk(600)}0\r\n\r\n`),
      bodies: [1_000],
    },
    {
      name: 'chunks above the limit, complete in one segment',
      request: post('Transfer-Encoding: chunked', `${chunk(400)}${chunk(601)}0\r\n\r\n`),
      status: 413,
    },
    {
      name: 'a large chunk that is not complete',
      request: post('Transfer-Encoding: chunked', `ffff\r\n${'x'.repeat(1_001)}`),
      status: 413,
    },
  ]) {
    test(`${status === undefined ? 'relays' : 'refuses'} ${name}`, async () => {
      await using client = await connectTo(fleet);
      const answer = await ask(client, request);
      assert.equal(answer.status, status ?? 200);
      if (status !== undefined) assert.deepEqual(await client.ended, { kind: 'end' });
      assert.deepEqual(received, bodies ?? []);
    });
  }

  test('resets the connection if the answer has begun before the body becomes too large', async () => {
    await using endpoint = await scriptedEndpoint();
    await using other = await startFleet();
    await startServing(
      other,
      webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT], maxBodyBytes: 10 } }),
    );
    await using client = await connectTo(other);
    await client.send(post('Transfer-Encoding: chunked', chunk(4)));
    const side = await endpoint.next();
    await side.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin');
    await client.take(/begin/);
    await client.send(chunk(7));
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual(await side.ended, { kind: 'error', code: 'ECONNRESET' });
  });
});
