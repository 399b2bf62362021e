// What only the streams of OpenSSL do: clients whose TLS records a test makes itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, type TestClient } from '@weir/testkit';
import { OpensslClient } from '../../../src/transport/syscalls/openssl-client.ts';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { opensslTlsServer } from '../../../src/transport/tls/openssl-server.ts';
import { type AcceptedConnection, startTestListener } from '../tcp/test-listener.ts';
import { tlsTransport } from './tls-transport.ts';

const NO_BYTES = new Uint8Array(0);
const TRANSPORT = tlsTransport('OpenSSL', { ...epollTransport, tlsServer: opensslTlsServer }).transport;

interface RawConnection extends AsyncDisposable {
  readonly accepted: AcceptedConnection;
  readonly socket: TestClient;
  readonly tls: OpensslClient;
}

interface RawOptions {
  readonly early?: string;
  readonly endsEarly?: boolean;
  readonly reads?: boolean;
}

/** Completes the handshake, and sends `early` in the same segment as the end of the handshake. */
async function connectRaw({ early = '', endsEarly = false, reads = true }: RawOptions = {}): Promise<RawConnection> {
  const stack = new AsyncDisposableStack();
  const listener = stack.use(await startTestListener(TRANSPORT));
  const arrival = listener.next({ reads });
  const socket = stack.use(await connectClient({ host: listener.host, port: listener.port }));
  const tls = stack.use(new OpensslClient({ alpn: NO_BYTES }));
  tls.handshake(NO_BYTES);
  await socket.send(tls.takeOutput());
  for (;;) {
    const header = await socket.take(5);
    const record = Buffer.concat([header, await socket.take(header.readUInt16BE(3))]);
    if (tls.handshake(record)) break;
  }
  const end = tls.takeOutput();
  if (early !== '') tls.send(Buffer.from(early));
  if (endsEarly) tls.sendCloseNotify();
  await socket.send(Buffer.concat([end, tls.takeOutput()]));
  const accepted = await arrival;
  return { accepted, socket, tls, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test('keeps what the client sends with the end of the handshake until the owner reads', async () => {
  await using connection = await connectRaw({ early: 'early', reads: false });
  const { accepted, socket, tls } = connection;
  const { stream, events } = accepted;
  tls.send(Buffer.from(' and later'));
  tls.sendCloseNotify();
  await socket.send(tls.takeOutput());
  assert.equal(events.received, 0);
  const chunks: string[] = [];
  events.onBytes = (_stream, bytes) => chunks.push(Buffer.from(bytes).toString());
  stream.readStart();
  await events.until(() => events.hasEnded);
  assert.deepEqual(chunks, ['early', ' and later']);
});

test('reports the end only to an owner that reads', async () => {
  await using connection = await connectRaw();
  const { accepted, socket, tls } = connection;
  const { stream, events } = accepted;
  events.onBytes = () => stream.readStop();
  tls.send(Buffer.from('last'));
  tls.sendCloseNotify();
  await socket.send(tls.takeOutput());
  await events.until(() => events.received === 4);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(events.hasEnded, false);
  stream.readStart();
  await events.until(() => events.hasEnded);
});

test('ends after a handshake without data, but only for an owner that reads', async () => {
  await using connection = await connectRaw({ endsEarly: true, reads: false });
  const { stream, events } = connection.accepted;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(events.hasEnded, false);
  stream.readStart();
  await events.until(() => events.hasEnded);
  assert.equal(events.received, 0);
});

test('defers early bytes like a read', async () => {
  await using connection = await connectRaw({ early: 'early', reads: false });
  const { stream, events } = connection.accepted;
  await new Promise<void>((resolve) => {
    stream.deferReads(resolve);
    stream.readStart();
  });
  assert.equal(events.received, 0);
  stream.readNow();
  assert.equal(events.text, 'early');
});

test('answers a request for new keys, and goes on', async () => {
  await using connection = await connectRaw();
  const { accepted, socket, tls } = connection;
  tls.requestNewKeys();
  tls.send(Buffer.from('new keys'));
  await socket.send(tls.takeOutput());
  await accepted.events.until(() => accepted.events.text === 'new keys');
  accepted.stream.write(Buffer.from('answer'));
  let answer = '';
  while (answer === '') {
    const header = await socket.take(5);
    answer = Buffer.from(tls.receive(Buffer.concat([header, await socket.take(header.readUInt16BE(3))]))).toString();
  }
  assert.equal(answer, 'answer');
});

test('resets a client that requests new keys without end and does not read the answers', async () => {
  await using connection = await connectRaw();
  const { accepted, socket, tls } = connection;
  const { events } = accepted;
  socket.pause();
  let rounds = 0;
  while (events.closed === undefined && rounds < 1_000) {
    for (let index = 0; index < 1_000; index += 1) {
      tls.requestNewKeys();
      tls.send(Buffer.from('x'));
    }
    rounds += 1;
    await Promise.race([
      socket.send(tls.takeOutput()).catch(() => undefined),
      events.until(() => events.closed !== undefined),
    ]);
  }
  assert.deepEqual(events.closed, { code: 'ENOBUFS' });
});
