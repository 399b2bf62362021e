// Tests HTTP/2 clients (node:http2) whose requests a real proxy relays to an endpoint of HTTP/1.1.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type { RunningProxy } from '../../../src/index.ts';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

const MEGABYTE = 1_048_576;

async function endpoint(context: TestContext, listener: RequestListener): Promise<{ address: string; port: number }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

async function fleetOf(
  context: TestContext,
  ...services: TestService[]
): Promise<{ fleet: Fleet; proxy: RunningProxy }> {
  const fleet = await startFleet();
  context.after(() => fleet[Symbol.asyncDispose]());
  await fleet.serve(...services);
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  return { fleet, proxy };
}

const plain = (at: { address: string; port: number }, over: Partial<TestService> = {}): TestService => ({
  name: 'web',
  port: PORT,
  endpoints: [at],
  ...over,
  settings: { httpPorts: [PORT], ...over.settings },
});

function connectTo(context: TestContext, fleet: Fleet, over: object = {}, scheme = 'http'): ClientHttp2Session {
  const session = connect(`${scheme}://${fleet.addressOf()}:${PORT}`, over);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  return session;
}

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: Buffer;
}

async function ask(session: ClientHttp2Session, headers: Record<string, string>, body?: Buffer): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let trailers: IncomingHttpHeaders | undefined;
  stream.on('trailers', (received: IncomingHttpHeaders) => {
    trailers = received;
  });
  const [received] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return { headers: received, trailers, body: Buffer.concat(parts) };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

test('relays requests of one connection with their bodies, at the same time', async (context) => {
  const at = await endpoint(context, async (request, response) => {
    const body = await bodyOf(request);
    response.setHeader('x-host', request.headers.host ?? '');
    response.setHeader('x-forwarded', `${request.headers['x-forwarded-proto']} ${request.headers.via}`);
    response.end(`${request.method} ${request.url} ${createHash('sha256').update(body).digest('hex')}`);
  });
  const { fleet } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet);
  const cases = Array.from({ length: 50 }, (_, index) => ({ path: `/${index}`, body: randomBytes(index * 5_000) }));
  await Promise.all(
    cases.map(async ({ path, body }) => {
      const { headers, body: answer } = await ask(session, { ':method': 'POST', ':path': path }, body);
      assert.equal(headers[':status'], 200);
      assert.equal(headers['x-host'], `${fleet.addressOf()}:${PORT}`);
      assert.equal(headers['x-forwarded'], 'http 2 weir');
      assert.equal(headers.via, '1.1 weir');
      assert.equal(headers['transfer-encoding'], undefined);
      assert.equal(answer.toString(), `POST ${path} ${createHash('sha256').update(body).digest('hex')}`);
    }),
  );
});

test('refuses a response that names more than 32 fields in Connection', async (context) => {
  const at = await endpoint(context, (_request, response) => {
    response.setHeader('connection', Array.from({ length: 33 }, (_, index) => `x${index}`).join());
    response.setHeader('x32', 'only for the proxy');
    response.end('body');
  });
  const { fleet } = await fleetOf(context, plain(at));
  const { headers } = await ask(connectTo(context, fleet), { ':path': '/' });
  assert.deepEqual([headers[':status'], headers.x32], [502, undefined]);
});

test('relays a large body to a slow client without filling memory, and other requests meanwhile', async (context) => {
  const at = await endpoint(context, (request, response) => {
    if (request.url === '/small') response.end('small');
    else response.end(Buffer.alloc(32 * MEGABYTE, 'x'));
  });
  const { fleet } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet);
  const slow = session.request({ ':path': '/large' });
  await once(slow, 'response');
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await ask(session, { ':path': '/small' })).body.toString(), 'small');
  }
  let received = 0;
  for await (const part of slow) received += (part as Buffer).length;
  assert.equal(received, 32 * MEGABYTE);
});

test('uses a connection again whose response the client has not taken yet', async (context) => {
  let connections = 0;
  const at = await endpoint(context, (request, response) => {
    if (request.socket.bytesWritten === 0) connections += 1;
    response.end('more than the window');
  });
  const { fleet } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet, { settings: { initialWindowSize: 4 } });
  const waiting = session.request({ ':path': '/' });
  await once(waiting, 'response');
  for (let count = 0; count < 3; count += 1) {
    assert.equal((await ask(session, { ':path': '/', ':method': 'HEAD' })).headers[':status'], 200);
  }
  assert.equal(connections, 1);
  const parts: Buffer[] = [];
  for await (const part of waiting) parts.push(part as Buffer);
  assert.equal(Buffer.concat(parts).toString(), 'more than the window');
});

test('begins the requests of one read in several turns if they are many', async (context) => {
  const at = await endpoint(context, (request, response) => response.end(`answer to ${request.url}`));
  let now = 0;
  // Each turn has time for one part of the requests.
  using worker = await startWorkerInTest(plain(at), { sliceClock: () => ++now });
  const session = connect(`http://${worker.host}:${worker.port}`);
  context.after(() => session.destroy());
  await once(session, 'remoteSettings');
  const before = now;
  const paths = Array.from({ length: 90 }, (_, index) => `/${index}`);
  await Promise.all(
    paths.map(async (path) => {
      assert.equal((await ask(session, { ':path': path })).body.toString(), `answer to ${path}`);
    }),
  );
  assert.ok(now > before);
});

test('relays trailers in both directions, interim responses, HEAD, 204 and 304', async (context) => {
  const at = await endpoint(context, async (request, response) => {
    if (request.url === '/early') response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    if (request.url === '/204') response.writeHead(204).end();
    else if (request.url === '/304') response.writeHead(304, { etag: '"a"' }).end();
    else if (request.url === '/head') response.writeHead(200, { 'content-length': '5' }).end();
    else {
      await bodyOf(request);
      response.setHeader('trailer', 'x-sum');
      response.write(`got ${JSON.stringify(request.trailers)}`);
      response.addTrailers({ 'x-sum': '42' });
      response.end();
    }
  });
  const { fleet } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet);
  const stream = session.request({ ':method': 'POST', ':path': '/trailers' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }));
  stream.end('body');
  const trailers = once(stream, 'trailers');
  let text = '';
  for await (const part of stream) text += String(part);
  assert.equal(text, 'got {"x-end":"yes"}');
  assert.equal(((await trailers) as [IncomingHttpHeaders])[0]['x-sum'], '42');
  const early = session.request({ ':path': '/early' });
  const [hints] = (await once(early, 'headers')) as [IncomingHttpHeaders];
  assert.deepEqual([hints[':status'], hints.link], [103, '</style.css>; rel=preload']);
  early.resume();
  await once(early, 'end');
  assert.equal((await ask(session, { ':path': '/204' })).headers[':status'], 204);
  assert.equal((await ask(session, { ':path': '/304' })).headers.etag, '"a"');
  const head = await ask(session, { ':method': 'HEAD', ':path': '/head' });
  assert.deepEqual([head.headers['content-length'], head.body.length], ['5', 0]);
});

test('resets a stream whose endpoint breaks off, and answers 502 before an answer has begun', async (context) => {
  const at = await endpoint(context, (request, response) => {
    if (request.url === '/ok') response.end('ok');
    else if (request.url === '/never') request.socket.resetAndDestroy();
    else {
      response.writeHead(200, { 'content-length': '10' });
      response.write('half', () => request.socket.resetAndDestroy());
    }
  });
  const { fleet } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet);
  const broken = session.request({ ':path': '/broken' });
  broken.resume();
  const [error] = (await once(broken, 'error')) as [NodeJS.ErrnoException];
  assert.equal(error.code, 'ERR_HTTP2_STREAM_ERROR');
  const failed = await ask(session, { ':path': '/never', accept: 'application/json' });
  assert.equal(failed.headers[':status'], 502);
  assert.equal(failed.headers['content-type'], 'application/json');
  assert.ok(JSON.parse(failed.body.toString()));
  assert.equal((await ask(session, { ':path': '/ok' })).body.toString(), 'ok');
});

test('negotiates HTTP/2 by ALPN, routes each request, and counts the bytes of the streams for their Services', async (context) => {
  const web = await endpoint(context, (request, response) => response.end(`web ${request.url}`));
  const api = await endpoint(context, (request, response) => response.end(`api ${request.url}`));
  const tls = terminatingTls({ alpn: ['h2', 'http/1.1'] });
  const overTls = (name: string, at: { address: string; port: number }, over: Partial<TestService>): TestService =>
    plain(at, { name, shared: true, ...tls, ...over, settings: { ...tls.settings, ...over.settings } });
  const { fleet, proxy } = await fleetOf(
    context,
    overTls('web', web, { settings: { hosts: ['web.example'] } }),
    overTls('api', api, { settings: { hosts: ['web.example'], pathPrefix: '/api', stripPrefix: true } }),
    overTls('game', api, { namespace: 'other', settings: { hosts: ['game.example'] } }),
  );
  const session = connectTo(context, fleet, { ...TRUSTING_CLIENT, servername: 'web.example' }, 'https');
  const authority = 'web.example';
  assert.equal((await ask(session, { ':authority': authority, ':path': '/a' })).body.toString(), 'web /a');
  assert.equal((await ask(session, { ':authority': authority, ':path': '/api/b' })).body.toString(), 'api /b');
  assert.equal((await ask(session, { ':authority': 'game.example', ':path': '/' })).headers[':status'], 421);
  session.close();
  await once(session, 'close');
  await eventually(async () => {
    const usage = await fleet.usage();
    // The connection, and so the answer 421, belongs to the first Service of the host by key.
    assert.deepEqual([usage.web?.requests, usage.api?.requests], [1, 2]);
    assert.ok((usage.api?.receivedBytes ?? 0) > 10 && (usage.api?.sentBytes ?? 0) > 'api /b'.length);
    assert.equal(
      proxy.view().services.reduce((sum, { active }) => sum + active, 0),
      0,
    );
  });
});

test('resets the connection of a suspended Service with its streams, without GOAWAY', async (context) => {
  const at = await endpoint(context, (_request, response) => {
    response.write('begun');
  });
  const { fleet, proxy } = await fleetOf(context, plain(at));
  const session = connectTo(context, fleet);
  const stream = session.request({ ':path': '/' });
  stream.on('error', () => undefined);
  await once(stream, 'data');
  const closed = new Promise((resolve) => session.on('close', resolve));
  let goaways = 0;
  session.on('goaway', () => {
    goaways += 1;
  });
  const failed = once(session, 'error');
  await fleet.cutOff({ kind: 'namespace', namespace: 'shop' });
  const [error] = (await failed) as [NodeJS.ErrnoException];
  await closed;
  assert.equal(error.code, 'ECONNRESET');
  assert.equal(goaways, 0);
  assert.notEqual(stream.rstCode, constants.NGHTTP2_NO_ERROR);
  await eventually(() => assert.deepEqual(outcomesFor(proxy), { 'cut-off': 1 }));
});
