import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatHostPort, Health } from '@weir/runtime';
import { connectClient, echoServer, eventually, freePort, type TestClient } from '@weir/testkit';
import { MAX_HTTP2_CONNECTIONS_PER_ENDPOINT } from '../../src/http/h2/endpoint-http2-connections.ts';
import type { RunningProxy } from '../../src/index.ts';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { http2Endpoint, http2Service } from '../fixtures/http2-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const ADMIN = { admin: { host: '127.0.0.1', port: 0 } };

test('a proxy is ready from its first table until it drains', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await fleet.proxy(ADMIN);
  assert.equal((await ask(proxy, '/healthz')).status, 200);
  const waiting = await ask(proxy, '/readyz');
  assert.equal(waiting.status, 503);
  assert.match(await waiting.text(), /no routing table yet/);
  await fleet.serve(webService([endpointOf(backend)]));
  await proxy.ready;
  assert.equal((await ask(proxy, '/readyz')).status, 200);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  const closing = proxy.close();
  assert.match(await (await ask(proxy, '/readyz')).text(), /draining/);
  await client.end();
  await closing;
});

test('metrics show usage, refusals and endpoints of each Service', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const dead = { address: '127.0.0.1', port: await freePort() };
  await fleet.serve(
    webService([endpointOf(backend)]),
    webService([dead], { name: 'down', namespace: 'games', port: 9_090 }),
  );
  const proxy = await fleet.proxy(ADMIN);
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('12345');
  await client.take(5);
  await connectAndAwaitEnd({ host: fleet.addressOf(), port: 9_090 });
  const revision = proxy.view().applied?.revision;
  await eventually(async () => {
    const lines = (await (await ask(proxy, '/metrics')).text()).split('\n');
    for (const line of [
      'weir_service_received_bytes_total{namespace="shop",service="web"} 5',
      'weir_service_sent_bytes_total{namespace="shop",service="web"} 5',
      'weir_service_connections_total{namespace="shop",service="web"} 1',
      'weir_service_connections_active{namespace="shop",service="web"} 1',
      'weir_service_refused_total{namespace="games",service="down",reason="connect-failed"} 1',
      'weir_service_endpoints{namespace="shop",service="web",state="ready"} 1',
      `weir_table_revision ${revision}`,
      'weir_proxy_info{version="dev",transport="syscalls"} 1',
      'weir_unrouted_bytes_total{direction="received"} 0',
      'weir_worker_connections_total{worker="0"} 2',
      'weir_worker_connections_active{worker="0"} 1',
      'weir_worker_ends_total{worker="0"} 0',
      'weir_worker_udp_datagrams_dropped_total{worker="0"} 0',
    ]) {
      assert.ok(lines.includes(line), `${line} is not in\n${lines.join('\n')}`);
    }
    for (const series of [
      'weir_worker_cpu_seconds_total{worker="0"}',
      'weir_worker_heap_bytes{worker="0"}',
      'weir_worker_event_loop_utilization{worker="0"}',
      'weir_worker_event_loop_delay_seconds{worker="0",quantile="0.99"}',
      'weir_proxy_event_loop_delay_seconds{quantile="1"}',
      'process_open_fds',
      'process_max_fds',
    ]) {
      const value = lines.find((line) => line.startsWith(`${series} `))?.split(' ')[1];
      assert.ok(Number(value) >= 0, `${series} is ${value}`);
    }
  });
  const debug = (await (await ask(proxy, '/debug/listeners')).json()) as { listeners: { listening: boolean }[] };
  assert.deepEqual(
    debug.listeners.map(({ listening }) => listening),
    [true, true],
  );
});

test('metrics count the requests that the proxy answered itself, by reason', async () => {
  await using fleet = await startFleet();
  const dead = { address: '127.0.0.1', port: await freePort() };
  await fleet.serve(webService([dead], { settings: { httpPorts: [PORT] } }));
  const proxy = await fleet.proxy(ADMIN);
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  for (const [request, status] of [
    ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 502],
    ['GET / HTTP/1.1\r\n\r\n', 400],
  ]) {
    await client.send(String(request));
    await client.take(new RegExp(`HTTP/1\\.1 ${status} .*\r\n\r\n`, 's'));
  }
  await client.ended;
  await eventually(async () => {
    const lines = (await (await ask(proxy, '/metrics')).text()).split('\n');
    for (const reason of ['connect-failed', 'invalid-request'])
      assert.ok(
        lines.includes(`weir_service_refused_total{namespace="shop",service="web",reason="${reason}"} 1`),
        reason,
      );
  });
});

test('metrics count a request that finds no free connection to its endpoint as overloaded', async (context) => {
  await using fleet = await startFleet();
  let held = 0;
  const holdStreams = (): void => {
    held += 1;
  };
  const busy = await http2Endpoint(context, holdStreams, { settings: { maxConcurrentStreams: 1 } });
  await fleet.serve(http2Service([busy]));
  const proxy = await fleet.proxy(ADMIN);
  await proxy.ready;
  const clients: TestClient[] = [];
  const send = async (): Promise<TestClient> => {
    const client = await connectClient({ host: fleet.addressOf(), port: PORT });
    clients.push(client);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    return client;
  };
  for (let count = 1; count <= MAX_HTTP2_CONNECTIONS_PER_ENDPOINT; count += 1) {
    await send();
    await eventually(() => assert.equal(held, count));
  }
  await (await send()).take(/^HTTP\/1\.1 503 .*too many requests in progress/s);
  await eventually(async () => {
    const text = await (await ask(proxy, '/metrics')).text();
    const series = text.split('\n').filter((line) => line.startsWith('weir_service_refused_total{'));
    assert.deepEqual(series, ['weir_service_refused_total{namespace="shop",service="web",reason="overloaded"} 1']);
  });
  for (const client of clients) await client.close();
});

test('a proxy serves clients and warns in its heartbeat while another program has the admin port', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const occupant = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const health = new Health();
  const proxy = await fleet.proxy({ admin: { host: occupant.host, port: occupant.port }, health });
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send('x');
  await client.take(1);
  // The proxy stays ready, because it serves clients. Probes on the Unix socket must not fail only for lack of the
  // admin port.
  assert.equal(health.report().ready, true);
  await eventually(async () =>
    assert.match(String((await fleet.heartbeats())[0]?.hostAdvice), /in use by another process; set WEIR_ADMIN/),
  );
  await occupant.close();
  await eventually(async () => assert.equal((await ask(proxy, '/readyz')).status, 200));
  await eventually(async () => assert.equal((await fleet.heartbeats())[0]?.hostAdvice, undefined));
});

test('a proxy fails to start if this host does not have the admin address', async () => {
  await using fleet = await startFleet();
  await assert.rejects(fleet.proxy({ admin: { host: '192.0.2.1', port: 8_687 } }), {
    message: /this host has no such address; set WEIR_ADMIN/,
  });
});

test('a draining proxy releases the admin port for its successor', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const admin = { host: '127.0.0.1', port: await freePort() };
  const first = await fleet.proxy({ admin });
  await first.ready;
  await using lasting = await connectClient({ host: fleet.addressOf(), port: PORT });
  await lasting.send('x');
  await lasting.take(1);
  const closing = first.close();
  await eventually(async () => assert.match(await (await ask(first, '/readyz')).text(), /draining/));
  const second = await fleet.proxy({ admin });
  await eventually(async () => assert.equal((await ask(second, '/readyz')).status, 200));
  assert.equal(first.adminAddress, undefined);
  await lasting.end();
  await closing;
});

function ask(proxy: RunningProxy, path: string): Promise<Response> {
  const { adminAddress } = proxy;
  assert.ok(adminAddress);
  return fetch(`http://${formatHostPort(adminAddress)}${path}`);
}
