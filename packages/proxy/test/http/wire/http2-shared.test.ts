// Tests HTTP/2 clients without TLS (RFC 9113 §3.3) at a listener that Services share: which Service gets each request.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { FrameReader, writeFrameHeader } from '../../../src/http/h2/frames.ts';
import { HpackEncoder } from '../../../src/http/h2/hpack/encoder.ts';
import { CLIENT_PREFACE, FLAG, FRAME } from '../../../src/http/h2/protocol.ts';
import { KEEP_ALIVE_MS } from '../../../src/http/request-timeouts.ts';
import { MAX_REQUESTS_PER_TURN } from '../../../src/http/request-turns.ts';
import type { RunningProxy } from '../../../src/index.ts';
import { ACTIVE, RECEIVED } from '../../../src/metering/counters.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor, startServing } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

/** Returns a Service of the listener whose endpoint answers with the name of the Service, and the host and target that it received. */
async function serviceOf(context: TestContext, name: string, over: Partial<TestService>): Promise<TestService> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(`${name} ${request.headers.host} ${request.url}`));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const endpoints = [{ address: '127.0.0.1', port }];
  return { name, port: PORT, endpoints, shared: true, ...over, settings: { httpPorts: [PORT], ...over.settings } };
}

async function fleetFor(context: TestContext): Promise<Fleet> {
  const fleet = await startFleet();
  context.after(() => fleet[Symbol.asyncDispose]());
  return fleet;
}

function connectTo(context: TestContext, fleet: Fleet): ClientHttp2Session {
  const session = connect(`http://${fleet.addressOf()}:${PORT}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  return session;
}

/** Sends a request, and resolves with the status and the body of its answer. */
async function ask(session: ClientHttp2Session, authority: string, path = '/', body?: Buffer): Promise<string> {
  const headers = { ':authority': authority, ':path': path, ':method': body === undefined ? 'GET' : 'POST' };
  const stream = session.request(headers, { endStream: body === undefined });
  stream.on('error', () => undefined);
  if (body !== undefined) stream.end(body);
  const [received] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  let text = '';
  for await (const part of stream) text += String(part);
  return `${received[':status']} ${text}`;
}

/** The number of open connections and requests of all Services. */
const activeIn = (proxy: RunningProxy): number => proxy.view().services.reduce((sum, { active }) => sum + active, 0);

/** The frame with this type, flags and payload. */
function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  bytes.set(payload, writeFrameHeader(bytes, 0, payload.length, type, flags, streamId));
  return bytes;
}

function headBlock(authority: string): Uint8Array {
  const encoder = new HpackEncoder();
  const block = new Uint8Array(1_000);
  encoder.begin(block, 0);
  for (const [name, value] of Object.entries({
    ':method': 'GET',
    ':scheme': 'http',
    ':authority': authority,
    ':path': '/',
  })) {
    const bytes = Buffer.from(name + value);
    encoder.field(bytes, 0, name.length, name.length, bytes.length);
  }
  return block.slice(0, encoder.position);
}

/** Resolves when a frame of this type, without ACK, has arrived. */
async function frameOf(client: TestClient, type: number): Promise<void> {
  const reader = new FrameReader({ hasPreface: false });
  for (;;) {
    const bytes = await client.take(1);
    reader.position = 0;
    const result = reader.next(bytes, bytes.length);
    assert.notEqual(result, 'error');
    if (result !== 'more' && reader.type === type && (reader.flags & FLAG.ack) === 0) return;
  }
}

test('serves the requests of one connection by host and path prefix, and counts them for their Services', async (context) => {
  const fleet = await fleetFor(context);
  const proxy = await startServing(
    fleet,
    await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } }),
    await serviceOf(context, 'api', { settings: { hosts: ['shop.example'], pathPrefix: '/api', stripPrefix: true } }),
    await serviceOf(context, 'blog', { namespace: 'other', settings: { hosts: ['*.blog.example'] } }),
  );
  const session = connectTo(context, fleet);
  const body = Buffer.alloc(100_000, 'x');
  assert.equal(await ask(session, 'shop.example', '/api/first', body), '200 api shop.example /first');
  assert.deepEqual(
    await Promise.all([
      ask(session, 'shop.example', '/a'),
      ask(session, 'shop.example', '/api/b', body),
      ask(session, 'a.blog.example', '/c'),
      ask(session, 'unknown.example', '/d'),
    ]).then((answers) => answers.map((answer) => answer.slice(0, 30))),
    [
      '200 web shop.example /a',
      '200 api shop.example /b',
      '200 blog a.blog.example /c',
      (await ask(session, 'unknown.example')).slice(0, 30),
    ],
  );
  assert.match(await ask(session, 'unknown.example'), /^404 /);
  session.close();
  await once(session, 'close');
  await eventually(async () => {
    const { web, api, blog } = await fleet.usage();
    // The connection belongs to the Service of its first request, which answers 404 too.
    assert.deepEqual([web?.requests, api?.requests, blog?.requests], [1, 5, 1]);
    assert.ok((api?.receivedBytes ?? 0) > 200_000 && (api?.receivedBytes ?? 0) < 201_000);
    assert.equal(activeIn(proxy), 0);
  });
});

test('serves a client that waits for SETTINGS, and whose bytes come one by one', async (context) => {
  const fleet = await fleetFor(context);
  await startServing(
    fleet,
    await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } }),
    await serviceOf(context, 'api', { settings: { hosts: ['api.example'] } }),
  );
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  for (const byte of CLIENT_PREFACE) await client.send(Uint8Array.of(byte));
  await client.send(frame(FRAME.settings, 0, 0, new Uint8Array(0)));
  await frameOf(client, FRAME.settings);
  await client.send(frame(FRAME.settings, FLAG.ack, 0, new Uint8Array(0)));
  await client.send(frame(FRAME.ping, 0, 0, new Uint8Array(8)));
  const head = frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, headBlock('api.example'));
  for (const byte of head) await client.send(Uint8Array.of(byte));
  await client.take(/api api\.example \//);
});

test('tells HTTP/2 from HTTP/1.1 at a listener of one Service although the first bytes come one by one', async (context) => {
  using worker = await startWorkerInTest(await serviceOf(context, 'web', { shared: false }));
  /** Sends the first bytes one by one. Each is read alone, because another client gets an answer in between. */
  const send = async (client: TestClient, bytes: Uint8Array): Promise<void> => {
    for (const byte of bytes.subarray(0, 5)) {
      await client.send(Uint8Array.of(byte));
      await using other = await connectClient(worker);
      await other.send('no request\r\n\r\n');
      assert.deepEqual(await other.ended, { kind: 'end' });
    }
    await client.send(bytes.subarray(5));
  };
  const block = frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, headBlock('shop.example'));
  await using http2 = await connectClient(worker);
  await send(http2, Buffer.concat([CLIENT_PREFACE, frame(FRAME.settings, 0, 0, new Uint8Array(0)), block]));
  await http2.take(/web shop\.example \//);
  for (const method of ['PUT', 'POST', 'PRINT']) {
    await using http1 = await connectClient(worker);
    await send(http1, Buffer.from(`${method} / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\n\r\nx`));
    // node:http does not know the method PRINT.
    await http1.take(method === 'PRINT' ? /^HTTP\/1\.1 400 / : /web shop\.example \//);
  }
});

test('counts a connection with requests for several Services of one tenant once for the limit of the tenant', async (context) => {
  const fleet = await fleetFor(context);
  fleet.limit('shop', { connections: 1 });
  const proxy = await startServing(
    fleet,
    await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } }),
    await serviceOf(context, 'api', { settings: { hosts: ['api.example'] } }),
  );
  for (let round = 0; round < 3; round += 1) {
    const session = connectTo(context, fleet);
    assert.match(await ask(session, 'shop.example'), /^200 /);
    const answers = await Promise.all(['api.example', 'shop.example', 'api.example'].map((host) => ask(session, host)));
    assert.deepEqual(answers, ['200 api api.example /', '200 web shop.example /', '200 api api.example /']);
    assert.match(await ask(connectTo(context, fleet), 'api.example'), /^503 /);
    session.close();
    await once(session, 'close');
    await eventually(() => assert.equal(activeIn(proxy), 0));
  }
});

test('refuses a first request that no Service gets, and a client that breaks the protocol', async (context) => {
  const fleet = await fleetFor(context);
  const proxy = await startServing(
    fleet,
    await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } }),
    await serviceOf(context, 'api', { settings: { hosts: ['shop.example'], pathPrefix: '/api' } }),
    await serviceOf(context, 'blog', { namespace: 'other', settings: { hosts: ['blog.example'] } }),
  );
  for (const [host, path, status] of [['unknown.example', '/', 404]] as const) {
    const session = connectTo(context, fleet);
    assert.match(await ask(session, host, path, Buffer.from('body')), new RegExp(`^${status} `));
    if (!session.closed) await once(session, 'close');
  }
  await fleet.cutOff({ kind: 'namespace', namespace: 'other' });
  const suspended = connectTo(context, fleet);
  assert.match(await ask(suspended, 'blog.example'), /^403 /);
  await eventually(() => assert.equal(outcomesFor(proxy, 'blog')?.['cut-off'], 1));
  await using broken = await connectClient({ host: fleet.addressOf(), port: PORT });
  await broken.send(CLIENT_PREFACE);
  await broken.send(frame(FRAME.ping, 0, 0, new Uint8Array(8)));
  await frameOf(broken, FRAME.goaway);
  assert.deepEqual(await broken.ended, { kind: 'end' });
  assert.equal(await ask(connectTo(context, fleet), 'shop.example'), '200 web shop.example /');
});

test('limits how many requests of the first read of a connection begin in one turn', async (context) => {
  const turns: number[] = [];
  const transport: TcpTransport = {
    ...epollTransport,
    connect(to, events, window) {
      turns.push(epollTransport.turns.current);
      return epollTransport.connect(to, events, window);
    },
  };
  const web = await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } });
  let now = 0;
  // Each turn of the event loop has time for one turn of a tenant.
  await using worker = await startWorkerInTest(web, { transport, sliceClock: () => ++now });
  await using client = await connectClient({ host: worker.host, port: PORT });
  const requests = Array.from({ length: 4 * MAX_REQUESTS_PER_TURN }, (_, index) =>
    frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 1, headBlock('shop.example')),
  );
  await client.send(Buffer.concat([CLIENT_PREFACE, frame(FRAME.settings, 0, 0, new Uint8Array(0)), ...requests]));
  await eventually(() => assert.equal(turns.length, requests.length));
  const begun = Map.groupBy(turns, (turn) => turn);
  const most = Math.max(...[...begun.values()].map(({ length }) => length));
  // The first request begins during the preread, and does not count against the tenant's turn.
  assert.ok(most <= MAX_REQUESTS_PER_TURN + 1, `${most} requests in one turn`);
});

test('names the last begun request in GOAWAY when it refuses the first request or ends an idle connection', async (context) => {
  const web = await serviceOf(context, 'web', { settings: { hosts: ['shop.example'] } });
  await using worker = await startWorkerInTest(web);
  const connectAndSend = async (...authorities: string[]): Promise<TestClient> => {
    const client = await connectClient({ host: worker.host, port: PORT });
    const requests = authorities.map((authority, index) =>
      frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 1, headBlock(authority)),
    );
    await client.send(Buffer.concat([CLIENT_PREFACE, frame(FRAME.settings, 0, 0, new Uint8Array(0)), ...requests]));
    return client;
  };
  await using refused = await connectAndSend('other.example', 'shop.example', 'shop.example');
  assert.equal(await lastStreamId(refused), 1);
  await using idle = await connectAndSend('shop.example', 'shop.example');
  await idle.take(/web shop\.example \/[\s\S]*web shop\.example \//);
  worker.tick(KEEP_ALIVE_MS / 1_000 + 1);
  assert.equal(await lastStreamId(idle), 3);
  const received = worker.row[RECEIVED];
  await idle.send(Buffer.alloc(10_000));
  await idle.end();
  await eventually(() => assert.equal(worker.row[ACTIVE], 0));
  assert.equal(worker.row[RECEIVED], received, 'only heads and DATA count');
});

/** Returns the last stream that the next GOAWAY names (RFC 9113 §6.8). */
async function lastStreamId(client: TestClient): Promise<number> {
  for (;;) {
    const head = await client.take(9);
    const payload = await client.take(head.readUIntBE(0, 3));
    if (head[3] === FRAME.goaway) return payload.readUInt32BE(0);
  }
}
