// Tests answers of endpoints of HTTP/2 that are not valid, sent frame by frame.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { FLAG, FRAME } from '../../../src/http/h2/protocol.ts';
import { ACTIVE } from '../../../src/metering/counters.ts';
import { refusalsIn } from '../../fixtures/http-worker.ts';
import { type Answer, ask1, ask2, http2Client, serveHttp2 } from '../../fixtures/http2-endpoint.ts';

type Fields = readonly (readonly [name: string, value: string])[];

function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

/** Encodes fields whose names and values are shorter than 127 bytes, without checks (RFC 7541 §6.2.2). */
function block(fields: Fields): Buffer {
  const parts = fields.map(([name, value]) => {
    const [nameBytes, valueBytes] = [Buffer.from(name, 'latin1'), Buffer.from(value, 'latin1')];
    return Buffer.concat([Buffer.of(0, nameBytes.length), nameBytes, Buffer.of(valueBytes.length), valueBytes]);
  });
  return Buffer.concat(parts);
}

const headers = (id: number, fields: Fields, flags = 0): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders | flags, id, block(fields));
const data = (id: number, text: string, flags = 0): Buffer => frame(FRAME.data, flags, id, Buffer.from(text));

/** MAX_CONCURRENT_STREAMS is 1,000. */
const SETTINGS = Buffer.of(0, 3, 0, 0, 0x03, 0xe8);

/** Starts an endpoint that answers each request with the frames of `answer`, for the stream of the request. */
async function rawEndpoint(
  context: TestContext,
  answer: (id: number, socket: Socket) => readonly Buffer[],
): Promise<{ readonly endpoint: { address: string; port: number }; readonly sockets: readonly Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write(frame(FRAME.settings, 0, 0, SETTINGS));
    let received = Buffer.alloc(0);
    let at = 24;
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= at + 9) {
        const length = received.readUIntBE(at, 3);
        if (received.length < at + 9 + length) return;
        const [type, id] = [received[at + 3], received.readUInt32BE(at + 5)];
        at += 9 + length;
        if (type === FRAME.headers) for (const part of answer(id, socket)) socket.write(part);
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { endpoint: { address: '127.0.0.1', port: (server.address() as AddressInfo).port }, sockets };
}

const OK: Fields = [[':status', '200']];

const INVALID_HEADS: Readonly<Record<string, Fields>> = {
  'a line end in a value': [...OK, ['x-a', 'a\r\nset-cookie: a=b']],
  'a line feed in a value': [...OK, ['x-a', 'a\nb']],
  'a NUL in a value': [...OK, ['x-a', 'a\0b']],
  'a line end in a name': [...OK, ['x-a: b\r\nx-b', 'c']],
  'a colon in a name': [...OK, ['x:a', 'b']],
  'a name in upper case': [...OK, ['X-A', 'b']],
  'a space before a value': [...OK, ['x-a', ' b']],
  'Transfer-Encoding': [...OK, ['transfer-encoding', 'chunked']],
  Connection: [...OK, ['connection', 'close']],
  'no status': [['x-a', 'b']],
  'two statuses': [...OK, ...OK],
  'the status 101': [[':status', '101']],
  'a status behind a field': [['x-a', 'b'], ...OK],
  'a pseudo-field of requests': [...OK, [':path', '/']],
  'two lengths': [...OK, ['content-length', '1'], ['content-length', '2']],
  'a length that is no number': [...OK, ['content-length', '1, 1']],
};

for (const [name, fields] of Object.entries(INVALID_HEADS)) {
  test(`answers 502 if the head of a response has ${name}`, async (context) => {
    const at = await rawEndpoint(context, (id) => [headers(id, fields), data(id, 'x', FLAG.endStream)]);
    const worker = await serveHttp2(context, [at]);
    const answers: Answer[] = [await ask1(worker, '/'), await ask2(http2Client(context, worker), { ':path': '/' })];
    for (const answer of answers) {
      assert.equal(answer.status, 502);
      assert.equal(answer.headers['set-cookie'], undefined);
    }
    assert.deepEqual(refusalsIn(worker.row), { 'invalid-response': 2 });
    // Only the streams were reset.
    assert.equal(at.sockets.length, 1);
  });
}

const CUT_OFF: Readonly<Record<string, (id: number) => readonly Buffer[]>> = {
  'less data than Content-Length': (id) => [
    headers(id, [...OK, ['content-length', '5']]),
    data(id, 'half', FLAG.endStream),
  ],
  'less data than Content-Length, and trailers': (id) => [
    headers(id, [...OK, ['content-length', '5']]),
    data(id, 'half'),
    headers(id, [['x-a', 'b']], FLAG.endStream),
  ],
  'more data than Content-Length': (id) => [
    headers(id, [...OK, ['content-length', '1']]),
    data(id, 'more', FLAG.endStream),
  ],
  'trailers with a line end': (id) => [
    headers(id, OK),
    data(id, 'half'),
    headers(id, [['x-a', 'b\r\nx-c: d']], FLAG.endStream),
  ],
  'trailers with a pseudo-field': (id) => [headers(id, OK), data(id, 'half'), headers(id, OK, FLAG.endStream)],
};

for (const [name, frames] of Object.entries(CUT_OFF)) {
  test(`cuts off a response with ${name}`, async (context) => {
    const at = await rawEndpoint(context, frames);
    const worker = await serveHttp2(context, [at]);
    await assert.rejects(ask1(worker, '/'), /aborted|ECONNRESET/);
    const stream = http2Client(context, worker).request({ ':path': '/' });
    stream.on('error', () => undefined);
    stream.resume();
    await eventually(() => assert.ok(stream.closed));
    assert.notEqual(stream.rstCode, 0);
    assert.equal(at.sockets.length, 1);
  });
}

test('ends a connection whose frames are not valid, and uses another one', async (context) => {
  let requests = 0;
  const at = await rawEndpoint(context, (id) => {
    requests += 1;
    if (requests === 1) return [frame(FRAME.headers, FLAG.endHeaders, id + 1, block(OK))];
    return [headers(id, OK), data(id, 'fine', FLAG.endStream)];
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  assert.equal((await ask2(client, { ':path': '/' })).status, 502);
  assert.equal((await ask2(client, { ':path': '/' })).body.toString(), 'fine');
  assert.equal(at.sockets.length, 2);
});

test('repeats a request without a body if its kept connection has ended, and answers 502 otherwise', async (context) => {
  let requests = 0;
  const at = await rawEndpoint(context, (id, socket) => {
    requests += 1;
    if (requests % 2 === 0) socket.destroy();
    return requests % 2 === 0 ? [] : [headers(id, OK), data(id, 'fine', FLAG.endStream)];
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const get = { ':path': '/' };
  assert.equal((await ask2(client, get)).status, 200);
  assert.equal((await ask2(client, get)).status, 200);
  assert.equal(requests, 3);
  assert.equal((await ask2(client, { ...get, ':method': 'POST' }, Buffer.from('body'))).status, 502);
  assert.equal(requests, 4);
});

test('answers 502 if the interim responses are larger than a head may be', async (context) => {
  // HPACK: one entry of the table, to which all other heads refer in seven bytes.
  const status = Buffer.concat([Buffer.of(0x08, 3), Buffer.from('103')]);
  const entry = Buffer.concat([
    Buffer.of(0x40, 4),
    Buffer.from('link'),
    Buffer.of(0x7f, 0xa1, 0x1e),
    Buffer.alloc(4_000, 'a'),
  ]);
  const interim = (id: number, fields: Buffer): Buffer =>
    frame(FRAME.headers, FLAG.endHeaders, id, Buffer.concat([status, fields]));
  const at = await rawEndpoint(context, (id) => [
    interim(id, entry),
    ...Array.from({ length: 3 }, () => interim(id, Buffer.alloc(7, 0xbe))),
    headers(id, OK, FLAG.endStream),
  ]);
  const worker = await serveHttp2(context, [at]);
  assert.equal((await ask1(worker, '/')).status, 502);
  assert.equal((await ask2(http2Client(context, worker), { ':path': '/' })).status, 502);
  assert.deepEqual(refusalsIn(worker.row), { 'invalid-response': 2 });
  assert.equal(at.sockets.length, 1);
});

test('keeps the other requests of a connection if a client leaves before many answers', async (context) => {
  const ids: number[] = [];
  const at = await rawEndpoint(context, (id) => {
    ids.push(id);
    return [];
  });
  const worker = await serveHttp2(context, [at]);
  const other = ask2(http2Client(context, worker), { ':path': '/' });
  await eventually(() => assert.equal(ids.length, 1));
  // More streams than a connection remembers one by one.
  const leaving = [http2Client(context, worker), http2Client(context, worker)];
  for (const client of leaving)
    for (let count = 0; count < 100; count += 1) client.request({ ':path': '/' }).on('error', () => undefined);
  await eventually(() => assert.equal(ids.length, 201));
  for (const client of leaving) client.destroy();
  await eventually(() => assert.equal(worker.row[ACTIVE], 1));
  // The endpoint has not read the resets yet.
  const [first = 0, ...late] = ids;
  for (const id of late) at.sockets[0]?.write(headers(id, OK, FLAG.endStream));
  at.sockets[0]?.write(headers(first, OK, FLAG.endStream));
  assert.equal((await other).status, 200);
  assert.equal(at.sockets.length, 1);
});

test('ends a connection that sends heads without end on a stream that was reset', async (context) => {
  const at = await rawEndpoint(context, (id) => Array.from({ length: 1_200 }, () => headers(id, [[':status', '103']])));
  const worker = await serveHttp2(context, [at]);
  assert.equal((await ask1(worker, '/')).status, 502);
  await eventually(() => assert.ok(at.sockets[0]?.closed));
});

test('keeps the requests of a connection whose endpoint does not read, if a client sends many large heads', async (context) => {
  const ids: number[] = [];
  const at = await rawEndpoint(context, (id, socket) => {
    ids.push(id);
    socket.pause();
    return [];
  });
  const worker = await serveHttp2(context, [at]);
  const other = ask2(http2Client(context, worker), { ':path': '/' });
  await eventually(() => assert.equal(ids.length, 1));
  const large = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`x-${index}`, 'a'.repeat(4_000)]));
  const clients = Array.from({ length: 10 }, () => http2Client(context, worker));
  for (const client of clients)
    for (let count = 0; count < 100; count += 1)
      client.request({ ':path': '/', ...large }).on('error', () => undefined);
  // The connections are full, so a request is refused.
  await eventually(() => assert.ok((refusalsIn(worker.row).overloaded ?? 0) > 0));
  at.sockets[0]?.write(headers(ids[0] ?? 0, OK, FLAG.endStream));
  assert.equal((await other).status, 200);
});
