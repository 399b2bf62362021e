// The access log of a real proxy, whose clients and endpoints are real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { PORT } from '../fixtures/listen-address.ts';
import { ALL_REQUESTS, type LogLine, serveLogged } from '../fixtures/logged-requests.ts';

/** Answers `/<status>` with this status, resets the connection of `/reset`, and never answers `/never`. */
const answerAsAsked: RequestListener = (request, response) => {
  const path = request.url?.split('?')[0] ?? '';
  request.resume();
  if (path === '/reset') request.socket.resetAndDestroy();
  else if (path === '/cut') {
    response.writeHead(200, { 'content-length': 10 }).write('half', () => request.socket.resetAndDestroy());
  } else if (path === '/upgrade') response.writeHead(101, { connection: 'Upgrade', upgrade: 'websocket' }).end();
  else if (path !== '/never') {
    const status = /^\/([0-9]{3})/.exec(path)?.[1] ?? '200';
    request.on('end', () => response.writeHead(Number(status), { 'content-length': 1 }).end('x'));
  }
};

/** A complete answer with a body of one byte, or the proxy's answer. */
const ANSWER = /^HTTP\/1\.1 [\s\S]*?\r\n\r\n(x|.*\n)/;
const get = (path: string, lines = ''): string => `GET ${path} HTTP/1.1\r\nHost: shop.example:80\r\n${lines}\r\n`;

test('writes one line per request with all members', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  const before = Date.now();
  const secrets = 'Cookie: session=secret\r\nAuthorization: Bearer secret\r\nProxy-Authorization: secret\r\n';
  await client.send(get('/200?token=secret', `User-Agent: probe/1 (x)\r\nX-Request-Id: id-7\r\n${secrets}`));
  await client.take(ANSWER);
  const [line = {}] = await serving.lines(1);
  const { time, durationMs, endpointMs, receivedBytes, sentBytes, ...rest } = line;
  assert.deepEqual(rest, {
    level: 'info',
    name: 'access',
    node: 'a',
    namespace: 'shop',
    service: 'web',
    client: '127.0.0.1',
    method: 'GET',
    host: 'shop.example',
    path: '/200',
    status: 200,
    reason: null,
    endpoint: `127.0.0.1:${serving.backend.port}`,
    attempts: 1,
    requestId: 'id-7',
    protocol: 'HTTP/1.1',
    tls: null,
    userAgent: 'probe/1 (x)',
  });
  assert.equal(new Date(String(time)).toISOString(), time);
  assert.ok(Date.parse(String(time)) >= before && Date.parse(String(time)) <= Date.now());
  assert.ok(Number(endpointMs) >= 0 && Number(endpointMs) <= Number(durationMs), `${endpointMs} of ${durationMs} ms`);
  assert.ok(Number(receivedBytes) > 0 && Number(sentBytes) > 0);
  assert.ok(!serving.text.includes('secret'));
});

test('logs exactly the bytes that each request of a connection received and sent', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  const chunked = 'POST /200 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  const requests = [
    { head: get('/200'), body: [] },
    { head: 'POST /404 HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n', body: ['hello', ' world'] },
    { head: chunked, body: ['5;a=b\r\nhel', 'lo\r\n0\r\n\r\n'] },
    // The proxy answers in place of the endpoint.
    { head: get('/reset'), body: [] },
  ];
  let received = 0;
  for (const [index, { head, body }] of requests.entries()) {
    for (const part of [head, ...body]) await client.send(part);
    await client.take(ANSWER);
    const line = (await serving.lines(index + 1))[index];
    const length = [head, ...body].join('').length;
    assert.equal(line?.receivedBytes, length, head);
    received += length;
    assert.ok(Number(line?.sentBytes) > 0);
  }
  const lines = await serving.lines(4);
  assert.deepEqual(
    lines.map(({ status, reason, attempts }) => [status, reason, attempts]),
    [
      [200, null, 1],
      [404, null, 1],
      [200, null, 1],
      [502, 'endpoint-failed', 1],
    ],
  );
  await client.send('GET /200 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await client.ended;
  const all = await serving.lines(5);
  received += Number(all[4]?.receivedBytes);
  const sum = (name: string): number => all.reduce((total, line) => total + Number(line[name]), 0);
  await eventually(async () => {
    const usage = (await serving.fleet.usage()).web;
    assert.deepEqual([usage?.receivedBytes, usage?.sentBytes], [received, sum('sentBytes')]);
  });
});

test('logs requests without a valid head, without an endpoint, and without an answer', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answerAsAsked);
  const { host, backend } = serving;
  await using invalid = await connectClient({ host, port: PORT });
  await invalid.send('GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n');
  await invalid.ended;
  await using expecting = await connectClient({ host, port: PORT });
  await expecting.send('PUT /x HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 3\r\n\r\nabc');
  await expecting.take(/^HTTP\/1\.1 417 /);
  await using cut = await connectClient({ host, port: PORT });
  await cut.send(get('/cut'));
  await cut.ended;
  const requests = backend.requests;
  const leaving = connect({ host, port: PORT });
  leaving.write(get('/never'));
  await eventually(() => assert.equal(backend.requests, requests + 1));
  leaving.resetAndDestroy();
  const lines = await serving.lines(4);
  const shown = ({ method, path, status, reason, attempts, endpoint }: LogLine): unknown[] => [
    ...[method, path, status, reason, attempts],
    endpoint === null ? null : 'one',
  ];
  assert.deepEqual(lines.map(shown), [
    [null, null, 400, 'invalid-request', 0, null],
    ['PUT', '/x', 417, 'unknown-expectation', 0, null],
    ['GET', '/cut', 200, 'aborted', 1, 'one'],
    ['GET', '/never', null, 'aborted', 1, 'one'],
  ]);
  assert.equal(lines[0]?.receivedBytes, 'GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n'.length);
});

test('logs a connection that another protocol takes over when it ends, with all its bytes', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  const upgrade = get('/upgrade', 'Connection: Upgrade\r\nUpgrade: websocket\r\n');
  await client.send(upgrade);
  await client.take(/^HTTP\/1\.1 101 [\s\S]*?\r\n\r\n/);
  assert.equal(serving.text, '');
  await client.end();
  await client.ended;
  const [line] = await serving.lines(1);
  assert.deepEqual([line?.status, line?.reason, line?.receivedBytes], [101, null, upgrade.length]);
});

test('a client cannot break a line, forge a line, or send control characters to a terminal', async () => {
  await using serving = await serveLogged({ ...ALL_REQUESTS, hasQuery: true }, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  // A quote, a backslash, a tab, C1 controls, the right-to-left override and the line separator in UTF-8.
  const hostile = Buffer.concat([
    Buffer.from('","status":999,"x":"\\\t\x9b31m', 'latin1'),
    Buffer.from('\u202e\u2028', 'utf8'),
    Buffer.from('A'.repeat(10_000)),
  ]);
  const path = `/200/..%0a%1b[31m?q=\\{"a}'`.replace('"', '');
  await client.send(Buffer.concat([Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\nUser-Agent: `), hostile]));
  await client.send('\r\n\r\n');
  await client.take(/^HTTP\/1\.1 /);
  const [line = {}] = await serving.lines(1);
  assert.equal(serving.text.split('\n').length, 2);
  assert.match(serving.text, /^[\x20-\x7e]+\n$/);
  assert.equal(line.userAgent, `${hostile.toString('latin1').slice(0, 256)}…`);
  assert.equal(line.path, '/200/..%0a%1b[31m');
  assert.equal(line.query, "q=\\{a}'");
  assert.notEqual(line.status, 999);
});

test('begins and ends to log on an open connection when the annotation changes', async () => {
  await using serving = await serveLogged(undefined, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  const request = async (status: number): Promise<void> => {
    await client.send(get(`/${status}`));
    await client.take(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*?\\r\\n\\r\\nx`));
  };
  await request(200);
  await serving.configure({ accessLog: ALL_REQUESTS });
  await request(201);
  assert.equal((await serving.lines(1))[0]?.status, 201);
  await serving.configure({});
  await request(202);
  await serving.configure({ accessLog: { requestsPerMillion: 1_000_000, hasQuery: true } });
  await request(203);
  assert.deepEqual(
    (await serving.lines(2)).map(({ status }) => status),
    [201, 203],
  );
});

test('logs a sample of the requests', async () => {
  await using serving = await serveLogged({ requestsPerMillion: 500_000 }, answerAsAsked);
  await using client = await connectClient({ host: serving.host, port: PORT });
  for (let count = 0; count < 200; count += 1) {
    await client.send(get('/200'));
    await client.take(ANSWER);
  }
  await serving.configure({ accessLog: ALL_REQUESTS });
  await client.send(get('/299'));
  await client.take(/^HTTP\/1\.1 299 /);
  const lines = await eventually(async () => {
    const all = await serving.lines(1);
    assert.equal(all.at(-1)?.status, 299);
    return all;
  });
  // Fewer than 40 or more than 160 of 200 have a probability below 1e-17.
  assert.ok(lines.length > 40 && lines.length < 160, `${lines.length} lines`);
});

test('a standard output that nobody reads slows no request, and dropped lines are counted', async () => {
  const taken = Promise.withResolvers<void>();
  const written: Uint8Array[] = [];
  const output = {
    write(bytes: Uint8Array): Promise<void> {
      written.push(bytes);
      return taken.promise;
    },
  };
  await using serving = await serveLogged(ALL_REQUESTS, answerAsAsked, { accessLogOutput: output });
  await using client = await connectClient({ host: serving.host, port: PORT });
  const COUNT = 2_000;
  const agent = `User-Agent: ${'u'.repeat(256)}\r\n`;
  for (let count = 0; count < COUNT; count += 1) {
    await client.send(get('/200', agent));
    await client.take(ANSWER);
  }
  const metric = 'weir_access_log_dropped_total{namespace="shop",service="web"}';
  assert.ok((await serving.metric(metric)) > 0);
  taken.resolve();
  await eventually(async () => {
    const dropped = await serving.metric(metric);
    const lines = Buffer.concat(written).toString().split('\n').length - 1;
    assert.equal(lines + dropped, COUNT);
  });
});

test('logs requests of HTTP/2, and those whose stream is reset', async () => {
  await using serving = await serveLogged({ ...ALL_REQUESTS, hasQuery: true }, answerAsAsked);
  const session = connectHttp2(`http://${serving.host}:${PORT}`);
  const stream = session.request({ ':path': '/201?a=b', ':authority': 'shop.example', 'user-agent': 'h2' });
  const [headers] = await once(stream, 'response');
  assert.equal(headers[':status'], 201);
  stream.resume();
  await once(stream, 'close');
  const [line = {}] = await serving.lines(1);
  const shown = ({ method, host, path, query, status, reason, protocol, userAgent, attempts }: LogLine): unknown[] => [
    ...[method, host, path, query, status, reason, protocol, userAgent, attempts],
  ];
  assert.deepEqual(shown(line), ['GET', 'shop.example', '/201', 'a=b', 201, null, 'HTTP/2', 'h2', 1]);
  assert.ok(Number(line.receivedBytes) > 0 && Number(line.sentBytes) > 0);
  const requests = serving.backend.requests;
  const leaving = session.request({ ':path': '/never' });
  leaving.on('error', () => undefined);
  await eventually(() => assert.equal(serving.backend.requests, requests + 1));
  leaving.close(constants.NGHTTP2_CANCEL);
  const [, aborted = {}] = await serving.lines(2);
  assert.deepEqual([aborted.path, aborted.status, aborted.reason], ['/never', null, 'aborted']);
  session.destroy();
});
