// Tests how long the proxy keeps connections to endpoints and clients, and how many it opens.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createEndpointStats, type Endpoint, type EndpointStats, endpointKey } from '@weir/model';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { EndpointConnections, MAX_CONNECTIONS_PER_ENDPOINT, MAX_IDLE } from '../../src/http/endpoint-connections.ts';
import { METHOD } from '../../src/http/h1/methods.ts';
import type { Exchange } from '../../src/http/request-carrier.ts';
import { epollTransport } from '../../src/transport/tcp/epoll-transport.ts';
import { answeringEndpoint, OK } from '../fixtures/answering-endpoint.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { ask, receive, startHttpWorker } from '../fixtures/http-worker.ts';
import { http2Endpoint } from '../fixtures/http2-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const silent = (): void => undefined;

for (const { name, transport } of TRANSPORTS) {
  describe(`over ${name},`, () => {
    test('an idle connection closes when its endpoint leaves the Service', async () => {
      await using endpoint = await answeringEndpoint();
      await using other = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      http.serve(other.endpoint);
      http.worker.tick(1);
      await eventually(() => assert.equal(endpoint.open, 0));
      assert.equal((await ask(client, GET)).status, 200);
      assert.equal(other.heads.length, 1);
    });

    test('an idle connection closes when its endpoint fails its health check', async () => {
      await using endpoint = await answeringEndpoint();
      await using other = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint, other.endpoint);
      await using client = await http.client();
      while (endpoint.open === 0) await ask(client, GET);
      const failing = [endpointKey(endpoint.endpoint)];
      const listeners = [http.worker.listener.key];
      http.worker.apply({ kind: 'health', listeners, excluded: failing, failing, draining: [] });
      http.worker.tick(1);
      await eventually(() => assert.equal(endpoint.open, 0));
    });

    test('an idle connection closes after 30 seconds', async () => {
      await using endpoint = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      http.worker.tick(29);
      await ask(client, GET);
      assert.equal(endpoint.accepted, 1);
      http.worker.tick(30);
      await eventually(() => assert.equal(endpoint.open, 0));
    });

    test('an idle connection closes one second before its endpoint closes it', async () => {
      const keptFor = (value: string): string => OK.replace('\r\n\r\n', `\r\nKeep-Alive: ${value}\r\n\r\n`);
      let answer = keptFor('timeout=5, max=100');
      await using endpoint = await answeringEndpoint((socket) => void socket.write(answer));
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      http.worker.tick(3);
      await ask(client, GET);
      assert.equal(endpoint.accepted, 1);
      http.worker.tick(4);
      await eventually(() => assert.equal(endpoint.open, 0));

      // A timeout of one second leaves no time for another request.
      answer = keptFor('timeout=1');
      await ask(client, GET);
      await eventually(() => assert.equal(endpoint.open, 0));
    });

    test('an invalid timeout of an endpoint is ignored', async () => {
      const answer = OK.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=-1\r\n\r\n');
      await using endpoint = await answeringEndpoint((socket) => void socket.write(answer));
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      http.worker.tick(29);
      await ask(client, GET);
      assert.equal(endpoint.accepted, 1);
    });

    test('an endpoint that does not answer FIN is reset', async () => {
      await using endpoint = await scriptedEndpoint();
      using http = await startHttpWorker(transport, endpointOf(endpoint));
      await using client = await http.client();
      const response = ask(client, GET);
      const connection = await endpoint.next();
      await connection.take(GET.length);
      await connection.send(OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
      assert.deepEqual(await response, { status: 200, body: 'ok', closes: false });
      assert.deepEqual(await connection.ended, { kind: 'end' });
      http.worker.tick(4);
      await assert.rejects(connection.send('x'), /ECONNRESET|EPIPE/);
    });

    test('a request goes to the endpoint with the fewest requests, however many idle connections it has', async () => {
      const endpoints = [await answeringEndpoint(silent), await answeringEndpoint(silent)];
      using http = await startHttpWorker(transport, ...endpoints.map(({ endpoint }) => endpoint));
      await using busyClient = await http.client();
      await busyClient.send(GET);
      const busy = await eventually(() => endpoints.find(({ heads }) => heads.length > 0) ?? assert.fail('no request'));
      const idle = endpoints.find((endpoint) => endpoint !== busy) ?? assert.fail('no other endpoint');
      idle.answer = (socket) => void socket.write(OK);
      const clients = await Promise.all(Array.from({ length: 8 }, () => http.client()));
      for (const client of [...clients, ...clients]) await ask(client, GET);
      assert.deepEqual([busy.heads.length, idle.heads.length, idle.accepted], [1, 16, 1]);
      for (const closing of [...clients, ...endpoints]) await closing[Symbol.asyncDispose]();
    });

    test('another protocol ends with FIN when the endpoint answers the FIN of the client', async () => {
      const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
      await using endpoint = await answeringEndpoint((socket) => void socket.write(switched));
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await client.send(GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'));
      await client.take(/^HTTP\/1\.1 101 .*\r\n\r\n/s);
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(http.worker.outcomes(), { completed: 1 }));
    });

    test('a drain closes idle connections on both sides', async () => {
      await using endpoint = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      http.worker.apply({ kind: 'drain', idleMs: 0 });
      assert.deepEqual(await client.ended, { kind: 'end' });
      await eventually(() => assert.equal(endpoint.open, 0));
    });

    test('a drain closes idle connections after the time that it gives them for another request', async () => {
      await using endpoint = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using idle = await http.client();
      await using active = await http.client();
      for (const client of [idle, active]) await ask(client, GET);
      http.worker.apply({ kind: 'drain', idleMs: 2_000 });
      http.worker.tick(1);
      assert.deepEqual(await ask(active, GET), { status: 200, body: 'ok', closes: true });
      assert.deepEqual(await active.ended, { kind: 'end' });
      http.worker.tick(3);
      assert.deepEqual(await idle.ended, { kind: 'end' });
    });

    test('a drain answers the first request of an HTTP/2 connection, and then ends the connection', async () => {
      await using endpoint = await answeringEndpoint();
      using http = await startHttpWorker(transport, endpoint.endpoint);
      const sessions = [0, 1].map(() => connectHttp2(`http://${http.worker.host}:${http.worker.port}`));
      for (const session of sessions) await once(session, 'remoteSettings');
      const statusOf = async (session: ClientHttp2Session): Promise<unknown> => {
        const [headers] = await once(session.request({ ':path': '/' }).resume(), 'response');
        return headers[':status'];
      };
      const [kept, unused] = sessions as [ClientHttp2Session, ClientHttp2Session];
      assert.equal(await statusOf(kept), 200);
      const ends = sessions.map((session) => once(session, 'close'));
      http.worker.apply({ kind: 'drain', idleMs: 2_000 });
      await ends[0];
      assert.equal(await statusOf(unused), 200);
      await ends[1];
    });

    test('a drain announces the end of a connection with its next response', async () => {
      const open: Socket[] = [];
      await using endpoint = await answeringEndpoint((socket) => void open.push(socket));
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using waiting = await http.client();
      await using incomplete = await http.client();
      await using unused = await http.client();
      await waiting.send(GET);
      await incomplete.send(GET.slice(0, 20));
      await eventually(() => assert.equal(open.length, 1));
      http.worker.apply({ kind: 'drain', idleMs: 0 });
      endpoint.answer = (socket) => void socket.write(OK);
      open[0]?.write(OK);
      const rests: readonly (readonly [TestClient, string])[] = [
        [waiting, ''],
        [incomplete, GET.slice(20)],
        [unused, GET],
      ];
      for (const [client, rest] of rests) {
        if (rest !== '') await client.send(rest);
        assert.deepEqual(await receive(client), { status: 200, body: 'ok', closes: true });
        assert.deepEqual(await client.ended, { kind: 'end' });
      }
      await eventually(() => assert.equal(endpoint.open, 0));
    });
  });
}

test('a worker with the maximum number of idle connections closes the one that was idle longest', async () => {
  await using endpoint = await answeringEndpoint();
  const connections = new EndpointConnections(epollTransport);
  const stats = Array.from({ length: MAX_IDLE + 2 }, () => {
    const each = createEndpointStats(endpoint.endpoint);
    each.tier = 0;
    return each;
  });
  for (const each of stats) connections.keep(connections.open(each, 'full') ?? assert.fail('no connection'));
  assert.equal(connections.idleCount, MAX_IDLE);
  assert.deepEqual(
    [0, 1, 2, MAX_IDLE + 1].map((index) => connections.takeIdle(stats[index] as EndpointStats) !== undefined),
    [false, false, true, true],
  );
  assert.equal(connections.idleCount, MAX_IDLE - 2);
  connections.drain();
  assert.equal(connections.idleCount, 0);
});

test('the idle connections of HTTP/1.1 and HTTP/2 have one maximum', async (context) => {
  const at = await http2Endpoint(context, () => undefined);
  await using http1 = await answeringEndpoint();
  const connections = new EndpointConnections(epollTransport, 2);
  const servedBy = (endpoint: Endpoint): EndpointStats => {
    const stats = createEndpointStats(endpoint);
    stats.tier = 0;
    return stats;
  };
  const options = { window: 'full', tls: undefined, isHttp2: true, mayReuse: true } as const;
  /** Opens a connection, which is idle afterwards. */
  const connect = async (stats: EndpointStats): Promise<void> => {
    const connected = Promise.withResolvers<void>();
    const carrier = connections.carrierTo(stats, options) ?? assert.fail('no connection');
    carrier.begin({ onConnected: connected.resolve } as Exchange, METHOD.get, 'none');
    await connected.promise;
    carrier.reset();
  };
  const [first, second] = [servedBy(at.endpoint), servedBy(at.endpoint)];
  await connect(first);
  await connect(second);
  assert.equal(connections.idleCount, 2);
  const busy = connections.carrierTo(first, options);
  assert.deepEqual([busy?.isConnected, connections.idleCount], [true, 1]);
  busy?.reset();
  assert.equal(connections.idleCount, 2);

  // The connection to `second` was idle longest.
  const stats = servedBy(http1.endpoint);
  connections.keep(connections.open(stats, 'full') ?? assert.fail('no connection'));
  assert.equal(connections.idleCount, 2);
  await eventually(() => assert.ok(at.sessions[1]?.destroyed));
  assert.equal(at.sessions[0]?.destroyed, false);
  await connect(second);
  await eventually(() => assert.ok(at.sessions[0]?.destroyed));
  assert.ok(connections.takeIdle(stats));
  connections.drain();
  assert.equal(connections.idleCount, 0);
});

test('a request that finds the maximum number of connections to each endpoint gets 503', async () => {
  await using endpoint = await answeringEndpoint(silent);
  using http = await startHttpWorker(epollTransport, endpoint.endpoint);
  const clients = await Promise.all(Array.from({ length: MAX_CONNECTIONS_PER_ENDPOINT }, () => http.client()));
  await Promise.all(clients.map((client) => client.send(GET)));
  await eventually(() => assert.equal(endpoint.heads.length, MAX_CONNECTIONS_PER_ENDPOINT));
  await using client = await http.client();
  assert.equal((await ask(client, GET)).status, 503);
  assert.deepEqual(http.refusals(), { overloaded: 1 });
  assert.equal(endpoint.accepted, MAX_CONNECTIONS_PER_ENDPOINT);
  endpoint.answer = (socket) => void socket.write(OK);
  clients[0]?.reset();
  await eventually(() => assert.equal(endpoint.open, MAX_CONNECTIONS_PER_ENDPOINT - 1));
  assert.equal((await ask(client, GET)).status, 200);
  for (const other of clients) await other.close();
});

test('a drain of the proxy does not wait for clients that keep their connections', async () => {
  await using fleet = await startFleet();
  await using endpoint = await answeringEndpoint();
  const proxy = await startServing(fleet, webService([endpoint.endpoint], { settings: { httpPorts: [PORT] } }));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await ask(client, GET);
  const closing = proxy.close({ drainMs: 600_000 });
  assert.deepEqual(await client.ended, { kind: 'end' });
  await client.end();
  await closing;
  assert.deepEqual(outcomesFor(proxy), { completed: 1 });
});
