// Counts requests at a real proxy: by code class in the ledger, and with their durations in the metrics.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, eventually, type HttpBackend, httpBackend } from '@weir/testkit';
import type { RunningProxy } from '../../../src/index.ts';
import { startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { endpointOf, webService } from '../../fixtures/services.ts';

/** Answers `/<status>` with this status, resets the connection of `/reset`, and never answers `/never`. */
const answerAsAsked: RequestListener = (request, response) => {
  const path = request.url ?? '';
  if (path === '/reset') request.socket.resetAndDestroy();
  else if (path === '/cut') {
    response.writeHead(200, { 'content-length': 10 }).write('half', () => request.socket.resetAndDestroy());
  } else if (path === '/upgrade') response.writeHead(101, { connection: 'Upgrade', upgrade: 'websocket' }).end();
  else if (path !== '/never') response.writeHead(Number(path.slice(1))).end('x');
};

interface Serving extends AsyncDisposable {
  readonly host: string;
  readonly backend: HttpBackend;
  readonly proxy: RunningProxy;
  usage(): Promise<unknown>;
  /** How many connections the Service has counted. */
  connections(): Promise<number | undefined>;
  /** The lines of the metrics of requests, without those of buckets. */
  metrics(): Promise<string[]>;
}

async function serveHttp(): Promise<Serving> {
  const stack = new AsyncDisposableStack();
  const fleet = stack.use(await startFleet());
  const backend = stack.use(await httpBackend({ handler: answerAsAsked }));
  const settings = { httpPorts: [PORT] };
  await fleet.serve(webService([endpointOf(backend)], { settings }), webService([], { name: 'tcp', port: 9_090 }));
  const proxy = await fleet.proxy({ admin: { host: '127.0.0.1', port: 0 } });
  await proxy.ready;
  return {
    host: fleet.addressOf(),
    backend,
    proxy,
    async usage() {
      const { requests, requestsByCodeClass } = (await fleet.usage()).web ?? {};
      return { requests, ...requestsByCodeClass };
    },
    async connections() {
      return (await fleet.usage()).web?.connections;
    },
    async metrics() {
      const { host, port } = proxy.adminAddress ?? assert.fail('the proxy has no admin port');
      const lines = (await (await fetch(`http://${host}:${port}/metrics`)).text()).split('\n');
      return lines.filter((line) => /^weir_service_(requests_total|(request|endpoint)_duration_seconds)/.test(line));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Sends a request and waits for the complete answer. Returns the status. */
async function get(host: string, path: string): Promise<number> {
  const response = await fetch(`http://${host}:${PORT}${path}`);
  await response.arrayBuffer();
  return response.status;
}

test('counts requests by code class and their durations, in metrics and ledger', async () => {
  await using serving = await serveHttp();
  const { host, backend } = serving;
  for (const path of ['/200', '/204', '/304', '/404', '/503'])
    assert.equal(await get(host, path), Number(path.slice(1)));
  // The proxy answers for an endpoint that resets its connections, and refuses what is not HTTP.
  assert.equal(await get(host, '/reset'), 502);
  await using invalid = await connectClient({ host, port: PORT });
  await invalid.send('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n');
  await invalid.take(/^HTTP\/1\.1 400 /);
  // A client that leaves gets no answer.
  const before = backend.requests;
  const leaving = connect({ host, port: PORT });
  leaving.write('GET /never HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually(() => assert.equal(backend.requests, before + 1));
  leaving.resetAndDestroy();
  await eventually(async () => {
    assert.deepEqual(await serving.usage(), { requests: 8, '2xx': 2, '3xx': 1, '4xx': 2, '5xx': 2, none: 1 });
  });
  const lines = await serving.metrics();
  for (const [codeClass, count] of Object.entries({ '2xx': 2, '3xx': 1, '4xx': 2, '5xx': 2, none: 1 })) {
    const line = `weir_service_requests_total{namespace="shop",service="web",code_class="${codeClass}"} ${count}`;
    assert.ok(lines.includes(line), `${line} is not in\n${lines.join('\n')}`);
  }
  // Neither the head that is not valid nor the request without an answer has a duration.
  assert.ok(lines.includes('weir_service_request_duration_seconds_count{namespace="shop",service="web"} 6'));
  assert.ok(lines.includes('weir_service_endpoint_duration_seconds_count{namespace="shop",service="web"} 5'));
  assert.ok(lines.includes('weir_service_request_duration_seconds_bucket{namespace="shop",service="web",le="+Inf"} 6'));
  assert.equal(lines.filter((line) => line.includes('le="0.005"')).length, 2);
  assert.ok(!lines.some((line) => line.includes('service="tcp"')), 'a Service without requests has no series');
});

test('counts each request of a keep-alive connection once, and an answer that breaks off by its status', async () => {
  await using serving = await serveHttp();
  await using client = await connectClient({ host: serving.host, port: PORT });
  await client.send('GET /200 HTTP/1.1\r\nHost: a\r\n\r\nGET /404 HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.take(/HTTP\/1\.1 404 [\s\S]*x/);
  await client.send('GET /cut HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.ended;
  await eventually(async () => {
    assert.deepEqual(await serving.usage(), { requests: 3, '2xx': 2, '3xx': 0, '4xx': 1, '5xx': 0, none: 0 });
  });
  const count = 'weir_service_request_duration_seconds_count{namespace="shop",service="web"} 2';
  assert.ok((await serving.metrics()).includes(count));
});

test('counts a granted upgrade as 2xx when it begins', async () => {
  await using serving = await serveHttp();
  await using client = await connectClient({ host: serving.host, port: PORT });
  await client.send('GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await client.take(/^HTTP\/1\.1 101 /);
  await eventually(async () => {
    assert.deepEqual(await serving.usage(), { requests: 1, '2xx': 1, '3xx': 0, '4xx': 0, '5xx': 0, none: 0 });
  });
});

test('counts no connection for a client whose only request is not valid, with each version of HTTP', async () => {
  await using serving = await serveHttp();
  const { host } = serving;
  await using client = await connectClient({ host, port: PORT });
  await client.send('GET a HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.take(/^HTTP\/1\.1 400 /);
  const session = connectHttp2(`http://${host}:${PORT}`);
  const [answer] = await once(session.request({ ':path': 'a' }).end(), 'response');
  assert.equal(answer[':status'], 400);
  session.destroy();
  await eventually(async () => {
    assert.deepEqual(await serving.usage(), { requests: 2, '2xx': 0, '3xx': 0, '4xx': 2, '5xx': 0, none: 0 });
  });
  assert.equal(await serving.connections(), 0);
});
