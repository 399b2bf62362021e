// Tests which idle connection to an endpoint carries the next request, and the limits after which a connection carries none.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createEndpointStats, type Endpoint, type EndpointStats } from '@weir/model';
import { connectClient, eventually } from '@weir/testkit';
import type { EndpointConnection } from '../../src/http/endpoint-connection.ts';
import { EndpointConnections, MAX_IDLE_PER_ENDPOINT, MAX_REQUESTS } from '../../src/http/endpoint-connections.ts';
import { MAX_AGE_TICKS } from '../../src/http/idle-connections.ts';
import { epollTransport } from '../../src/transport/tcp/epoll-transport.ts';
import { answeringEndpoint, OK } from '../fixtures/answering-endpoint.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { ask, startHttpWorker } from '../fixtures/http-worker.ts';
import { ask2, http2Client, http2Endpoint, serveHttp2 } from '../fixtures/http2-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { startServing, webService } from '../fixtures/services.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
/** How many seconds a connection may be idle, and one less. */
const LONG_PAUSE = 29;

function statsOf(endpoint: Endpoint): EndpointStats {
  const stats = createEndpointStats(endpoint);
  stats.tier = 0;
  return stats;
}

describe('the connections of one worker to one endpoint', () => {
  /** Opens this many connections, which are not idle. */
  const open = (connections: EndpointConnections, stats: EndpointStats, count: number): EndpointConnection[] =>
    Array.from({ length: count }, () => connections.open(stats, 'full') ?? assert.fail('no connection'));

  test('carry the next request on the connection that became idle last', async () => {
    await using endpoint = await answeringEndpoint();
    const connections = new EndpointConnections(epollTransport);
    const stats = statsOf(endpoint.endpoint);
    const [a, b, c] = open(connections, stats, 3) as [EndpointConnection, EndpointConnection, EndpointConnection];
    for (const each of [a, b, c]) connections.keep(each);
    assert.equal(connections.takeIdle(stats), c);
    assert.equal(connections.takeIdle(stats), b);
    connections.keep(c);
    connections.keep(b);
    assert.equal(connections.takeIdle(stats), b);
    assert.equal(connections.takeIdle(stats), c);
    assert.equal(connections.takeIdle(stats), a);
    assert.equal(connections.takeIdle(stats), undefined);
    for (const each of [a, b, c]) each.reset();
  });

  test('are not kept after their last request', async () => {
    await using endpoint = await answeringEndpoint();
    const connections = new EndpointConnections(epollTransport);
    const stats = statsOf(endpoint.endpoint);
    const [almost, last] = open(connections, stats, 2) as [EndpointConnection, EndpointConnection];
    almost.requests = MAX_REQUESTS - 1;
    last.requests = MAX_REQUESTS;
    connections.keep(almost);
    connections.keep(last);
    assert.equal(connections.idleCount, 1);
    assert.equal(connections.takeIdle(stats), almost);
    almost.reset();
  });

  test('are not kept if the maximum number is idle', async () => {
    await using endpoint = await answeringEndpoint();
    await using other = await answeringEndpoint();
    const connections = new EndpointConnections(epollTransport);
    const stats = statsOf(endpoint.endpoint);
    for (const each of open(connections, stats, MAX_IDLE_PER_ENDPOINT + 2)) connections.keep(each);
    assert.equal(connections.idleCount, MAX_IDLE_PER_ENDPOINT);
    // The maximum is that of one endpoint.
    for (const each of open(connections, statsOf(other.endpoint), 1)) connections.keep(each);
    assert.equal(connections.idleCount, MAX_IDLE_PER_ENDPOINT + 1);
    await eventually(() => assert.equal(endpoint.open, MAX_IDLE_PER_ENDPOINT));
    connections.drain();
    await eventually(() => assert.deepEqual([endpoint.open, other.open], [0, 0]));
  });
});

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: a connection of HTTP/1.1 ends after one hour, when its request has ended`, async () => {
    const sockets: Socket[] = [];
    let isAnswered = true;
    await using endpoint = await answeringEndpoint((socket) => {
      sockets.push(socket);
      if (isAnswered) socket.write(OK);
    });
    using http = await startHttpWorker(transport, endpoint.endpoint);
    await using client = await http.client();
    await ask(client, GET);
    let age = 0;
    for (; age + LONG_PAUSE < MAX_AGE_TICKS; age += LONG_PAUSE) {
      http.worker.tick(LONG_PAUSE);
      await ask(client, GET);
    }
    // The last request begins before the connection is one hour old, and ends after that.
    isAnswered = false;
    const before = sockets.length;
    const answer = ask(client, GET);
    await eventually(() => assert.equal(sockets.length, before + 1));
    http.worker.tick(LONG_PAUSE);
    assert.deepEqual([endpoint.accepted, endpoint.open], [1, 1]);
    isAnswered = true;
    sockets.at(-1)?.write(OK);
    assert.deepEqual(await answer, { status: 200, body: 'ok', closes: false });
    await eventually(() => assert.equal(endpoint.open, 0));
    await ask(client, GET);
    assert.equal(endpoint.accepted, 2);
  });

  test(`${name}: an idle connection of HTTP/1.1 ends when it is one hour old`, async () => {
    await using endpoint = await answeringEndpoint();
    using http = await startHttpWorker(transport, endpoint.endpoint);
    await using client = await http.client();
    await ask(client, GET);
    for (let age = 0; age < MAX_AGE_TICKS - 10; age += 10) {
      http.worker.tick(10);
      await ask(client, GET);
    }
    http.worker.tick(9);
    assert.equal(endpoint.open, 1);
    http.worker.tick(1);
    await eventually(() => assert.equal(endpoint.open, 0));
    assert.equal(endpoint.accepted, 1);
  });
}

test('a connection of HTTP/2 ends after one hour, when it carries no request', async (context) => {
  const at = await http2Endpoint(context, (stream, headers) => {
    stream.respond({ ':status': 200 });
    if (headers[':path'] === '/held') stream.once('data', () => stream.end('held'));
    else stream.end('ok');
  });
  const worker = await serveHttp2(context, [at]);
  let client = http2Client(context, worker);
  for (let age = 0; age < MAX_AGE_TICKS - 10; age += 10) {
    worker.tick(10);
    if (client.closed) client = http2Client(context, worker);
    await ask2(client, { ':path': '/' });
  }
  const held = client.request({ ':method': 'POST', ':path': '/held' });
  await new Promise((resolve) => held.once('response', resolve));
  worker.tick(20);
  // The connection carries further requests while it cannot end, so that the endpoint gets no second connection.
  await ask2(client, { ':path': '/' });
  assert.deepEqual([at.sessions.length, at.sessions[0]?.destroyed], [1, false]);
  held.end('end');
  assert.equal(Buffer.concat(await held.toArray()).toString(), 'held');
  await eventually(() => assert.ok(at.sessions[0]?.destroyed));
  await ask2(client, { ':path': '/' });
  assert.equal(at.sessions.length, 2);
});

describe('two Services with the same endpoint', () => {
  const hosts = ['shop.example', 'blog.example'];
  const service = (
    host: string,
    endpoint: Endpoint,
    http2Ports: readonly number[],
  ): Parameters<typeof startServing>[1] =>
    webService([endpoint], {
      name: host.split('.')[0] as string,
      shared: true,
      settings: { hosts: [host], httpPorts: [PORT], http2Ports },
    });

  test('never share a connection of HTTP/1.1, although one client sends requests to both', async () => {
    const hostsBySocket = new Map<Socket, Set<string>>();
    await using endpoint = await answeringEndpoint((socket, head) => {
      const host = /^host: (.*)$/im.exec(head)?.[1] ?? '';
      hostsBySocket.set(socket, (hostsBySocket.get(socket) ?? new Set()).add(host));
      socket.write(OK);
    });
    await using fleet = await startFleet();
    await startServing(fleet, ...hosts.map((host) => service(host, endpoint.endpoint, [])));
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
    for (let round = 0; round < 5; round += 1)
      for (const host of hosts)
        assert.equal((await ask(client, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).status, 200);
    assert.deepEqual(
      [...hostsBySocket.values()].map((all) => [...all]),
      hosts.map((host) => [host]),
    );
  });

  test('never share a connection of HTTP/2', async (context) => {
    const hostsBySession = new Map<unknown, Set<string>>();
    const at = await http2Endpoint(context, (stream, headers) => {
      const { session } = stream;
      hostsBySession.set(session, (hostsBySession.get(session) ?? new Set()).add(String(headers[':authority'])));
      stream.respond({ ':status': 200, 'content-length': 2 });
      stream.end('ok');
    });
    await using fleet = await startFleet();
    await startServing(fleet, ...hosts.map((host) => service(host, at.endpoint, [PORT])));
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
    for (let round = 0; round < 5; round += 1)
      for (const host of hosts)
        assert.equal((await ask(client, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).status, 200);
    assert.deepEqual(
      [...hostsBySession.values()].map((all) => [...all]),
      hosts.map((host) => [host]),
    );
  });
});
