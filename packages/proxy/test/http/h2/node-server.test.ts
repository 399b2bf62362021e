// A client of the engine and a server of node:http2, over real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { latin1Text } from '../../../src/http/h1/head-fields.ts';
import { METHOD } from '../../../src/http/h1/methods.ts';
import type { Http2Connection } from '../../../src/http/h2/connection.ts';
import { ERROR } from '../../../src/http/h2/protocol.ts';
import type { Http2Stream } from '../../../src/http/h2/stream.ts';
import { asciiBytes } from '../../../src/http/passes/byte-writer.ts';
import { consumerOf, engineOver } from './engine-socket.ts';

/** What a client received on one stream. */
interface Received {
  heads: string[];
  body: Buffer;
  trailers: string[];
  closeCode: number | undefined;
}

interface Client {
  readonly connection: Http2Connection;
  readonly serverSession: ServerHttp2Session;
  /** Resolves when the peer has sent something that changes how many streams can be opened. */
  nextCapacity(): Promise<void>;
}

async function startClient(context: TestContext, server: Http2Server): Promise<Client> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = once(server, 'session');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  const waiting: (() => void)[] = [];
  const nextCapacity = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
  const connection = engineOver(socket, 'client', {
    onRequest: () => assert.fail('a client receives no request'),
    onCapacity: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  });
  const [serverSession] = await session;
  context.after(() => {
    socket.destroy();
    serverSession.destroy();
    server.close();
  });
  return { connection, serverSession, nextCapacity };
}

/** Sends a request. The result resolves when the stream has ended. */
function request(
  connection: Http2Connection,
  method: 'GET' | 'HEAD' | 'POST',
  { path = '/', body }: { readonly path?: string; readonly body?: Uint8Array } = {},
): { readonly stream: Http2Stream; readonly received: Promise<Received> } {
  const { promise, resolve } = Promise.withResolvers<Received>();
  const received: Received = { heads: [], body: Buffer.alloc(0), trailers: [], closeCode: undefined };
  const encoder = connection.beginHead();
  for (const [name, value] of [
    [':method', method],
    [':scheme', 'http'],
    [':authority', 'example.com'],
    [':path', path],
  ] as const) {
    const bytes = asciiBytes(name + value);
    encoder.field(bytes, 0, name.length, name.length, bytes.length);
  }
  const ids = { GET: METHOD.get, HEAD: METHOD.head, POST: METHOD.post };
  const consumer = consumerOf({
    onResponse: (_stream, head) => {
      received.heads.push(latin1Text(head.memory, head.reasonStart - 13, head.at));
    },
    onData: (stream, bytes, start, end) => {
      received.body = Buffer.concat([received.body, bytes.subarray(start, end)]);
      connection.consumed(stream, end - start);
    },
    onTrailers: (_stream, { count, ...rest }) => {
      assert.equal(count, 1);
      received.trailers.push(latin1Text(rest.bytes, rest.nameStart[0] as number, rest.valueEnd[0] as number));
    },
    onClose: (_stream, code) => {
      received.closeCode = code;
      resolve(received);
    },
  });
  const stream = connection.open(consumer, ids[method], body === undefined);
  if (body !== undefined) connection.sendData(stream, body, 0, body.length, true);
  connection.flush();
  return { stream, received: promise };
}

const serverOf = (onStream: (stream: ServerHttp2Stream, path: string) => void, settings = {}): Http2Server =>
  createServer({ settings }).on('stream', (stream: ServerHttp2Stream, headers) => {
    // Node.js reports a stream that the server itself resets as an error.
    stream.on('error', () => {});
    onStream(stream, String(headers[':path']));
  });

suite('an HTTP/2 client', () => {
  test('receives interim responses, the final response, data and trailers', async (context) => {
    const server = serverOf((stream) => {
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      stream.respond({ ':status': 200, date: 'now', 'x-a': 'b' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('body');
    });
    const { connection } = await startClient(context, server);
    assert.deepEqual(await request(connection, 'GET').received, {
      heads: ['HTTP/1.1 103 \r\nlink: </a>\r\n', 'HTTP/1.1 200 \r\ndate: now\r\nx-a: b\r\n'],
      body: Buffer.from('body'),
      trailers: ['grpc-status: 0'],
      closeCode: undefined,
    });
  });

  test('sends and receives bodies that are larger than all windows', async (context) => {
    const server = serverOf((stream) => {
      stream.respond({ ':status': 200, date: 'now' });
      stream.pipe(stream);
    });
    const { connection } = await startClient(context, server);
    const bodies = Array.from({ length: 8 }, (_, index) => Buffer.alloc(400_000 + index, 97 + index));
    const results = await Promise.all(bodies.map((body) => request(connection, 'POST', { body }).received));
    for (const [index, { body }] of results.entries()) assert.ok(body.equals(bodies[index] as Buffer), `body ${index}`);
  });

  test('accepts a Content-Length without a body in the response to HEAD', async (context) => {
    const server = serverOf((stream) => {
      stream.respond({ ':status': 200, date: 'now', 'content-length': '500' });
      stream.end();
    });
    const { connection } = await startClient(context, server);
    const { heads, closeCode } = await request(connection, 'HEAD').received;
    assert.deepEqual(heads, ['HTTP/1.1 200 \r\ndate: now\r\ncontent-length: 500\r\n']);
    assert.equal(closeCode, undefined);
  });

  test('opens no more streams than the server allows', async (context) => {
    const held: ServerHttp2Stream[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = serverOf(
      (stream) => {
        held.push(stream);
        if (held.length === 2) resolve();
      },
      { maxConcurrentStreams: 2 },
    );
    const { connection, nextCapacity } = await startClient(context, server);
    while (connection.freeStreams > 0) {
      if (connection.streamCount === 2) await nextCapacity();
      else request(connection, 'GET');
    }
    assert.equal(connection.streamCount, 2);
    await promise;
    const freed = nextCapacity();
    held[0]?.respond({ ':status': 204 }, { endStream: true });
    await freed;
    assert.ok(connection.freeStreams > 0);
  });

  test('tells a refused stream from a failed one', async (context) => {
    const server = serverOf((stream, path) =>
      stream.close(path === '/refused' ? constants.NGHTTP2_REFUSED_STREAM : constants.NGHTTP2_INTERNAL_ERROR),
    );
    const { connection } = await startClient(context, server);
    assert.equal((await request(connection, 'GET', { path: '/refused' }).received).closeCode, ERROR.refusedStream);
    assert.equal((await request(connection, 'GET', { path: '/failed' }).received).closeCode, ERROR.internal);
  });

  test('finishes streams up to the last one of GOAWAY and gives the others back', async (context) => {
    const server = serverOf((stream) => {
      if (stream.id === 1) {
        first = stream;
        return;
      }
      stream.session?.goaway(constants.NGHTTP2_NO_ERROR, 1);
      first?.respond({ ':status': 200, date: 'now' }, { endStream: true });
    });
    let first: ServerHttp2Stream | undefined;
    const { connection } = await startClient(context, server);
    const [one, two] = await Promise.all([request(connection, 'GET').received, request(connection, 'GET').received]);
    assert.deepEqual([one.heads.length, one.closeCode], [1, undefined]);
    assert.deepEqual([two.heads.length, two.closeCode], [0, ERROR.refusedStream]);
    assert.equal(connection.freeStreams, 0);
  });

  test('keeps a complete response whose request the server stops', async (context) => {
    const server = serverOf((stream) => {
      stream.respond({ ':status': 413, date: 'now' });
      stream.end('too large', () => stream.close(constants.NGHTTP2_NO_ERROR));
    });
    const { connection } = await startClient(context, server);
    const { heads, body, closeCode } = await request(connection, 'POST', { body: new Uint8Array(500_000) }).received;
    assert.deepEqual([heads.length, String(body), closeCode], [1, 'too large', undefined]);
  });

  test('stops a response by a reset', async (context) => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const server = serverOf((stream) => {
      stream.on('close', () => resolve(stream.rstCode));
      stream.respond({ ':status': 200 });
      stream.write('x');
    });
    const { connection } = await startClient(context, server);
    const { stream, received } = request(connection, 'GET');
    connection.reset(stream, ERROR.cancel);
    connection.flush();
    assert.equal((await received).closeCode, ERROR.cancel);
    assert.equal(await promise, constants.NGHTTP2_CANCEL);
  });
});
