// Tests requests that a worker relays to endpoints of HTTP/2 (node:http2), from clients of HTTP/1.1 and HTTP/2.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as http1Request, type IncomingMessage } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { MAX_HTTP2_CONNECTIONS_PER_ENDPOINT } from '../../../src/http/h2/endpoint-http2-connections.ts';
import { codeClassColumn, RECEIVED, SENT } from '../../../src/metering/counters.ts';
import {
  type Answer,
  answerOf,
  ask1,
  ask2,
  echo,
  echoed,
  hashOf,
  http2Client,
  http2Endpoint,
  http2Service,
  serveHttp2,
} from '../../fixtures/http2-endpoint.ts';

const MEGABYTE = 1_048_576;
const REFUSED = constants.NGHTTP2_REFUSED_STREAM;

test('relays bodies and trailers of HTTP/1.1 and HTTP/2 in both directions', async (context) => {
  const at = await http2Endpoint(context, echo);
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  for (const size of [0, 1, 100_000, 3 * MEGABYTE]) {
    const sent = randomBytes(size);
    const stream = client.request({ ':method': 'POST', ':path': '/a?b', te: 'trailers' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }));
    stream.end(sent);
    for (const answer of [await answerOf(stream), await ask1(worker, '/a?b', sent)]) {
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['x-hash'], hashOf(sent));
      assert.equal(answer.headers.via, '2 weir');
      assert.deepEqual([answer.trailers['x-sum'], answer.trailers['grpc-status']], ['42', '0']);
      const { headers, trailers, body } = echoed(answer);
      assert.ok(body.equals(sent));
      assert.equal(trailers['x-end'], 'yes');
      assert.equal(headers[':path'], '/a?b');
      assert.equal(headers[':method'], 'POST');
      assert.equal(headers[':scheme'], 'http');
      assert.equal(headers[':authority'], `${worker.host}:${worker.port}`);
      assert.equal(headers.te, 'trailers');
      assert.equal(headers['x-forwarded-proto'], 'http');
    }
  }
  assert.equal(at.sessions.length, 1);
});

test('carries 100 requests at a time on one connection, and more on a second', async (context) => {
  const waiting: ServerHttp2Stream[] = [];
  const at = await http2Endpoint(context, (stream) => void waiting.push(stream), {
    settings: { maxConcurrentStreams: 100 },
  });
  const worker = await serveHttp2(context, [at]);
  const [one, other] = [http2Client(context, worker), http2Client(context, worker)];
  const answers = Array.from({ length: 100 }, (_, index) => ask2(one, { ':path': `/${index}` }));
  await eventually(() => assert.equal(waiting.length, 100));
  assert.equal(at.sessions.length, 1);
  answers.push(ask2(other, { ':path': '/other' }));
  await eventually(() => assert.equal(waiting.length, 101));
  assert.equal(at.sessions.length, 2);
  for (const stream of waiting) {
    stream.respond({ ':status': 200 });
    stream.end('ok');
  }
  for (const answer of await Promise.all(answers)) assert.equal(answer.body.toString(), 'ok');
});

test('repeats a request that the endpoint has refused, with its body', async (context) => {
  let refusals = 0;
  const at = await http2Endpoint(context, (stream, headers) => {
    if (headers['x-refuse'] === 'yes' && refusals < 2) {
      refusals += 1;
      stream.close(REFUSED);
    } else void echo(stream, headers);
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const sent = Buffer.from('a body');
  const answer = await ask2(client, { ':method': 'POST', ':path': '/', 'x-refuse': 'yes' }, sent);
  assert.equal(answer.status, 200);
  assert.ok(echoed(answer).body.equals(sent));
  assert.equal(refusals, 2);
});

test('answers 502 if the endpoint refuses a request again and again', async (context) => {
  let refusals = 0;
  const at = await http2Endpoint(context, (stream) => {
    refusals += 1;
    stream.close(REFUSED);
  });
  const worker = await serveHttp2(context, [at]);
  assert.equal((await ask2(http2Client(context, worker), { ':path': '/' })).status, 502);
  assert.equal(refusals, 4);
});

test('answers 503 if all connections to the endpoint have as many requests as the endpoint allows', async (context) => {
  const held: ServerHttp2Stream[] = [];
  const at = await http2Endpoint(context, (stream) => void held.push(stream), {
    settings: { maxConcurrentStreams: 1 },
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const answers: Promise<Answer>[] = [];
  for (let count = 1; count <= MAX_HTTP2_CONNECTIONS_PER_ENDPOINT; count += 1) {
    answers.push(ask2(client, { ':path': '/hold' }));
    await eventually(() => assert.equal(held.length, count));
  }
  assert.equal((await ask2(client, { ':path': '/' })).status, 503);
  assert.equal(at.sessions.length, MAX_HTTP2_CONNECTIONS_PER_ENDPOINT);
  for (const stream of held) stream.respond({ ':status': 200 }, { endStream: true });
  for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
});

test('repeats the requests behind the last stream of GOAWAY on another connection, and ends the others as usual', async (context) => {
  const held: ServerHttp2Stream[] = [];
  const at = await http2Endpoint(context, (stream, headers) => {
    if (headers[':path'] === '/hold' && held.push(stream) < 3) return;
    if (held.length < 3) void echo(stream, headers);
    else if (held.length === 3) {
      // The first of the held requests is processed, the second is not.
      at.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR, held[0]?.id);
      held[0]?.respond({ ':status': 200 });
      held[0]?.end('first');
      held.push(stream);
      stream.respond({ ':status': 200 });
      stream.end('third');
    } else {
      stream.respond({ ':status': 200 });
      stream.end('again');
    }
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const first = ask2(client, { ':path': '/hold' });
  await eventually(() => assert.equal(held.length, 1));
  const second = ask2(client, { ':method': 'POST', ':path': '/hold' }, Buffer.from('body'));
  await eventually(() => assert.equal(held.length, 2));
  const third = ask2(client, { ':path': '/hold' });
  const answers = await Promise.all([first, second, third]);
  assert.deepEqual(
    answers.map(({ body }) => body.toString()),
    ['first', 'again', 'again'],
  );
  assert.equal(at.sessions.length, 2);
});

test('resets the stream of the other side, with the same code, and keeps the connection', async (context) => {
  const codes: number[] = [];
  let begun = 0;
  const at = await http2Endpoint(context, (stream, headers) => {
    if (headers[':path'] === '/before') stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else if (headers[':path'] === '/after') {
      stream.respond({ ':status': 200 });
      stream.write('part');
      stream.on('data', () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM));
    } else {
      begun += 1;
      stream.on('close', () => codes.push(stream.rstCode));
    }
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  assert.equal((await ask2(client, { ':path': '/before' })).status, 502);
  const after = client.request({ ':method': 'POST', ':path': '/after' });
  after.on('error', () => undefined);
  await once(after, 'data');
  after.write('more');
  await eventually(() => assert.ok(after.closed));
  assert.equal(after.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);

  const cancelled = client.request({ ':path': '/hold' });
  cancelled.on('error', () => undefined);
  await eventually(() => assert.equal(begun, 1));
  cancelled.close(constants.NGHTTP2_CANCEL);
  await eventually(() => assert.deepEqual(codes, [constants.NGHTTP2_CANCEL]));

  const http1 = http1Request({ host: worker.host, port: worker.port, path: '/hold', agent: false }).end();
  http1.on('error', () => undefined);
  await eventually(() => assert.equal(begun, 2));
  http1.socket?.resetAndDestroy();
  await eventually(() => assert.deepEqual(codes, [constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL]));
  assert.equal(at.sessions.length, 1);
});

test('resets the connection of an HTTP/1.1 client whose answer the endpoint has cut off', async (context) => {
  const at = await http2Endpoint(context, (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('part');
    stream.on('data', (part: Buffer) => {
      if (part.includes('b')) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    });
  });
  const worker = await serveHttp2(context, [at]);
  const { host, port } = worker;
  const request = http1Request({ host, port, method: 'POST', agent: false });
  request.on('error', () => undefined);
  request.write('a');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.equal(String((await once(response, 'data'))[0]), 'part');
  request.write('b');
  await assert.rejects(response.toArray(), /aborted|ECONNRESET/);
});

test('an endpoint may answer before the request is complete', async (context) => {
  let reset = false;
  const at = await http2Endpoint(context, (stream) => {
    stream.on('close', () => {
      reset = true;
    });
    stream.respond({ ':status': 413 });
    stream.end('too much');
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const stream = client.request({ ':method': 'POST', ':path': '/' });
  stream.write('a part');
  stream.on('error', () => undefined);
  const answer = await answerOf(stream);
  assert.deepEqual([answer.status, answer.body.toString()], [413, 'too much']);
  await eventually(() => assert.ok(reset));
});

test('relays interim responses, HEAD, 204, 304, and 100-continue', async (context) => {
  const at = await http2Endpoint(context, async (stream, headers) => {
    const path = String(headers[':path']);
    if (path === '/hints') stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' });
    if (headers.expect !== undefined) {
      stream.additionalHeaders({ ':status': 100 });
      await stream.toArray();
    }
    if (path === '/204') stream.respond({ ':status': 204 }, { endStream: true });
    else if (path === '/304') stream.respond({ ':status': 304, etag: '"a"' }, { endStream: true });
    else if (headers[':method'] === 'HEAD')
      stream.respond({ ':status': 200, 'content-length': 5 }, { endStream: true });
    else {
      stream.respond({ ':status': 200, 'content-length': 5 });
      stream.end('hello');
    }
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const hints = client.request({ ':path': '/hints' });
  const [early] = (await once(hints, 'headers')) as [IncomingHttpHeaders];
  assert.deepEqual([early[':status'], early.link], [103, '</a.css>; rel=preload']);
  assert.equal((await answerOf(hints)).body.toString(), 'hello');
  assert.equal((await ask2(client, { ':path': '/204' })).status, 204);
  assert.equal((await ask2(client, { ':path': '/304' })).headers.etag, '"a"');
  const head = await ask2(client, { ':method': 'HEAD', ':path': '/' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '5', 0]);
  const { host, port } = worker;
  const request = http1Request({ host, port, method: 'POST', headers: { expect: '100-continue' }, agent: false });
  request.on('continue', () => request.end('body'));
  request.flushHeaders();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.equal(Buffer.concat(await response.toArray()).toString(), 'hello');
});

test('counts requests, and the bytes of their clients', async (context) => {
  const at = await http2Endpoint(context, echo);
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const sent = randomBytes(MEGABYTE);
  await ask2(client, { ':method': 'POST', ':path': '/' }, sent);
  await ask1(worker, '/', sent);
  await eventually(() => {
    worker.tick(1);
    assert.equal(worker.row[codeClassColumn('2xx')], 2);
    for (const column of [RECEIVED, SENT]) {
      const bytes = worker.row[column] ?? 0;
      assert.ok(bytes > 2 * MEGABYTE && bytes < 2.1 * MEGABYTE, `${bytes} bytes`);
    }
  });
});

test('offers no WebSockets', async (context) => {
  const at = await http2Endpoint(context, (stream, headers) => {
    stream.respond({ ':status': 200, 'x-upgrade': String(headers.upgrade) });
    stream.end('no');
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  await ask2(client, { ':path': '/' });
  const fields = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http', ':path': '/', ':authority': 'a' };
  assert.equal((await ask2(client, fields)).status, 501);
  const { host, port } = worker;
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
  const request = http1Request({ host, port, headers: upgrade, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.deepEqual([response.statusCode, response.headers['x-upgrade']], [200, 'undefined']);
  response.resume();
});

test('closes connections that are idle, whose endpoint was removed, or of a draining worker', async (context) => {
  const at = await http2Endpoint(context, (stream, headers) => {
    stream.respond({ ':status': 200 });
    if (headers[':path'] !== '/hold') stream.end('ok');
    else stream.once('data', () => stream.end('held'));
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const connectedAgain = async (): Promise<boolean> => {
    const before = at.sessions.length;
    await ask2(client, { ':path': '/' });
    return at.sessions.length > before;
  };
  assert.equal(await connectedAgain(), true);
  worker.tick(29);
  assert.equal(await connectedAgain(), false);
  worker.tick(31);
  await eventually(() => assert.ok(at.sessions[0]?.destroyed));
  assert.equal(await connectedAgain(), true);

  // The open request of a removed endpoint is relayed to its end, without further requests.
  const held = client.request({ ':method': 'POST', ':path': '/hold' });
  await once(held, 'response');
  const other = await http2Endpoint(context, echo);
  worker.serve(http2Service([other]));
  worker.tick(1);
  await ask2(client, { ':path': '/' });
  assert.equal(other.sessions.length, 1);
  assert.equal(at.sessions[1]?.destroyed, false);
  held.end('end');
  assert.equal(Buffer.concat(await held.toArray()).toString(), 'held');
  await eventually(() => assert.ok(at.sessions[1]?.destroyed));

  worker.apply({ kind: 'drain', idleMs: 0 });
  await eventually(() => assert.ok(other.sessions[0]?.destroyed));
});
