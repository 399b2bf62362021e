// Tests requests that a real proxy relays to endpoints of HTTP/2 (node:http2), from clients of HTTP/1.1 and HTTP/2.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as http1Request, type IncomingMessage } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Endpoint } from '@weir/model';
import { eventually } from '@weir/testkit';
import { PORT } from '../../fixtures/listen-address.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const MEGABYTE = 1_048_576;
const REFUSED = constants.NGHTTP2_REFUSED_STREAM;

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

interface Http2Endpoint {
  readonly endpoint: Endpoint;
  /** The connections, in order. */
  readonly sessions: readonly ServerHttp2Session[];
}

async function http2Endpoint(context: TestContext, handler: Handler, options: object = {}): Promise<Http2Endpoint> {
  const sessions: ServerHttp2Session[] = [];
  const server = createServer(options);
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    handler(stream, headers);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { endpoint: { address: '127.0.0.1', port: (server.address() as AddressInfo).port }, sessions };
}

async function serve(
  context: TestContext,
  endpoints: readonly Http2Endpoint[],
  over: Partial<TestService> = {},
): Promise<WorkerInTest> {
  const worker = await startWorkerInTest({
    name: 'web',
    port: PORT,
    endpoints: endpoints.map(({ endpoint }) => endpoint),
    ...over,
    settings: { httpPorts: [PORT], http2Ports: [PORT], ...over.settings },
  });
  context.after(() => worker[Symbol.dispose]());
  return worker;
}

function http2Client(context: TestContext, { host, port }: WorkerInTest): ClientHttp2Session {
  const session = connect(`http://${host}:${port}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  return session;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (received: IncomingHttpHeaders) => {
    trailers = received;
  });
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  const body = Buffer.concat(await stream.toArray());
  return { status: Number(headers[':status']), headers, trailers, body };
}

/** Sends a request of HTTP/2. */
async function ask2(client: ClientHttp2Session, headers: Record<string, string>, body?: Buffer): Promise<Answer> {
  const stream = client.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

/** Sends a request of HTTP/1.1 on a connection of its own. The body is chunked, with a trailer. */
async function ask1({ host, port }: WorkerInTest, path: string, body?: Buffer): Promise<Answer> {
  const chunked = { 'transfer-encoding': 'chunked', trailer: 'x-end', te: 'trailers', connection: 'te' };
  const headers = body === undefined ? {} : chunked;
  const request = http1Request({
    host,
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers,
    agent: false,
  });
  if (body !== undefined) request.addTrailers({ 'x-end': 'yes' });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const received = Buffer.concat(await response.toArray());
  return { status: response.statusCode ?? 0, headers: response.headers, trailers: response.trailers, body: received };
}

const hashOf = (body: Uint8Array): string => createHash('sha256').update(body).digest('hex');

/** Answers with the fields, the trailers and the body of the request. */
const echo: Handler = async (stream, headers) => {
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (received: IncomingHttpHeaders) => {
    trailers = received;
  });
  const body = Buffer.concat(await stream.toArray());
  stream.respond({ ':status': 200, 'x-hash': hashOf(body) }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42', 'grpc-status': '0' }));
  stream.write(`${JSON.stringify({ headers, trailers })}\n`);
  stream.end(body);
};

function echoed({ body }: Answer): { headers: IncomingHttpHeaders; trailers: IncomingHttpHeaders; body: Buffer } {
  const end = body.indexOf('\n');
  return { ...JSON.parse(body.subarray(0, end).toString()), body: body.subarray(end + 1) };
}

test('relays bodies and trailers of HTTP/1.1 and HTTP/2 in both directions', async (context) => {
  const at = await http2Endpoint(context, echo);
  const worker = await serve(context, [at]);
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
  const worker = await serve(context, [at]);
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
  const worker = await serve(context, [at]);
  const client = http2Client(context, worker);
  const sent = Buffer.from('a body');
  const answer = await ask2(client, { ':method': 'POST', ':path': '/', 'x-refuse': 'yes' }, sent);
  assert.equal(answer.status, 200);
  assert.ok(echoed(answer).body.equals(sent));
  assert.equal(refusals, 2);
});
