// A client of node:http2 and a server of the engine, over real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { latin1Text } from '../../../src/http/h1/head-fields.ts';
import type { Http2Connection } from '../../../src/http/h2/connection.ts';
import type { DecodedHead } from '../../../src/http/h2/decoded-head.ts';
import { encodeLines } from '../../../src/http/h2/head-encoder.ts';
import { ERROR } from '../../../src/http/h2/protocol.ts';
import type { Http2Stream, StreamConsumer } from '../../../src/http/h2/stream.ts';
import { consumerOf, engineOver } from './engine-socket.ts';

type OnRequest = (connection: Http2Connection, stream: Http2Stream, head: DecodedHead) => StreamConsumer;

interface Pair {
  readonly session: ClientHttp2Session;
  readonly connection: Http2Connection;
}

/** Connects a client of Node.js to a server that handles requests with `onRequest`. */
async function startPair(context: TestContext, onRequest: OnRequest): Promise<Pair> {
  const { promise, resolve } = Promise.withResolvers<Http2Connection>();
  const server = createServer((socket) => {
    const connection: Http2Connection = engineOver(socket, 'server', {
      onRequest: (stream, head) => onRequest(connection, stream, head),
    });
    resolve(connection);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  context.after(() => {
    session.destroy();
    server.close();
  });
  await once(session, 'remoteSettings');
  return { session, connection: await promise };
}

const linesOf = (text: string): Uint8Array => Buffer.from(text, 'latin1');

function answer(
  connection: Http2Connection,
  stream: Http2Stream,
  status: number,
  lines = '',
  endsStream = false,
): void {
  const encoder = connection.beginHead();
  encoder.status(status);
  const bytes = linesOf(lines);
  encodeLines(encoder, bytes, { start: 0, end: bytes.length, kind: 'response' });
  connection.sendHead(stream, endsStream);
}

/** Answers with the received body, and reads no faster than the client. */
function echo(connection: Http2Connection): StreamConsumer {
  let waitingBytes = 0;
  return consumerOf({
    onData: (stream, bytes, start, end) => {
      if (connection.sendData(stream, bytes, start, end) > 0) waitingBytes += end - start;
      else connection.consumed(stream, end - start);
    },
    onDrain: (stream) => {
      connection.consumed(stream, waitingBytes);
      waitingBytes = 0;
    },
    onEnd: (stream) => connection.sendEnd(stream),
  });
}

async function bodyOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

suite('an HTTP/2 server', () => {
  test('presents the head of a request as a head of HTTP/1.1', async (context) => {
    const heads: string[] = [];
    const { session } = await startPair(context, (connection, stream, head) => {
      heads.push(latin1Text(head.memory, head.methodStart, head.at));
      answer(connection, stream, 204, '', true);
      return consumerOf({});
    });
    const request = session.request({ ':path': '/a?b', 'x-one': 'Value', cookie: ['a=1', 'b=2'], accept: '*/*' });
    const [headers] = await once(request, 'response');
    assert.equal(headers[':status'], 204);
    const host = new URL(session.originSet?.[0] ?? 'http://unknown').host;
    assert.ok(host !== '');
    const lines = (heads[0] as string).split('\r\n');
    assert.equal(lines[0], 'GET /a?b HTTP/1.1');
    assert.match(lines[1] as string, /^host: 127\.0\.0\.1:\d+$/);
    assert.deepEqual(lines.slice(2).sort(), ['', 'accept: */*', 'cookie: a=1; b=2', 'x-one: Value']);
  });

  test('echoes bodies of many streams that are larger than all windows', async (context) => {
    const { session } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 200, 'Content-Type: text/plain\r\n');
      return echo(connection);
    });
    const bodies = Array.from({ length: 20 }, (_, index) => Buffer.alloc(300_000 + index, index + 1));
    const received = await Promise.all(
      bodies.map((body) => {
        const request = session.request({ ':method': 'POST' });
        request.end(body);
        return bodyOf(request);
      }),
    );
    for (const [index, body] of bodies.entries()) assert.ok(body.equals(received[index] as Buffer), `body ${index}`);
  });

  test('sends data and trailers to a client that reads late', async (context) => {
    const body = Buffer.alloc(1_000_000, 'x');
    const { session } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 200);
      assert.ok(connection.sendData(stream, body, 0, body.length) > 0);
      connection.sendTrailers(stream, linesOf('Grpc-Status: 0\r\nGrpc-Message: fine\r\n'));
      return consumerOf({});
    });
    const request = session.request({});
    const trailers = once(request, 'trailers');
    assert.equal((await bodyOf(request)).length, body.length);
    const [fields] = await trailers;
    assert.deepEqual([fields['grpc-status'], fields['grpc-message']], ['0', 'fine']);
  });

  test('passes on the trailers of a request', async (context) => {
    const { session } = await startPair(context, (connection) => {
      let names = '';
      return consumerOf({
        onData: (stream, _bytes, start, end) => connection.consumed(stream, end - start),
        onTrailers: (_stream, trailers) => {
          names = `${trailers.nameText(0)}=${trailers.valueText(0)}`;
        },
        onEnd: (stream) => answer(connection, stream, 200, `X-Trailer: ${names}\r\n`, true),
      });
    });
    const request = session.request({ ':method': 'POST' }, { waitForTrailers: true });
    request.on('wantTrailers', () => request.sendTrailers({ checksum: 'abc' }));
    request.end('body');
    const [headers] = await once(request, 'response');
    assert.equal(headers['x-trailer'], 'checksum=abc');
  });

  test('sends interim responses before the final response', async (context) => {
    const { session } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 103, 'Link: </a>\r\n');
      answer(connection, stream, 200, '', true);
      return consumerOf({});
    });
    const request = session.request({});
    const interim = once(request, 'headers');
    const [headers] = await once(request, 'response');
    assert.equal((await interim)[0].link, '</a>');
    assert.equal(headers[':status'], 200);
  });

  test('opens a WebSocket tunnel by extended CONNECT', async (context) => {
    const { session } = await startPair(context, (connection, stream, head) => {
      assert.ok(head.startsWebSocket);
      assert.equal(latin1Text(head.memory, head.methodStart, head.methodEnd), 'GET');
      answer(connection, stream, 200);
      return echo(connection);
    });
    const request = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/chat' });
    await once(request, 'response');
    request.write('ping');
    const [piece] = await once(request, 'data');
    assert.equal(String(piece), 'ping');
    request.end();
    await once(request, 'end');
  });

  test('lets a client of a tunnel send after the end of the server', async (context) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { session } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 200, '', true);
      let received = '';
      return consumerOf({
        onData: (_stream, bytes, start, end) => {
          received += latin1Text(bytes, start, end);
        },
        onClose: (_stream, code) => resolve(`${received} ${code}`),
      });
    });
    const request = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/chat' });
    await once(request.resume(), 'end');
    request.end('late');
    assert.equal(await promise, 'late undefined');
  });

  test('lets a client stop its body after an early answer', async (context) => {
    const { session } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 413, '', true);
      return consumerOf({});
    });
    const request = session.request({ ':method': 'POST' });
    const [headers] = await once(request, 'response');
    assert.equal(headers[':status'], 413);
    await once(request.resume(), 'close');
    assert.equal(request.rstCode, constants.NGHTTP2_NO_ERROR);
  });

  test('tells the consumer about a reset by the client', async (context) => {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const { session, connection } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 200);
      return consumerOf({ onClose: (_stream, code) => resolve(code) });
    });
    const request = session.request({ ':method': 'POST' });
    await once(request, 'response');
    request.close(constants.NGHTTP2_CANCEL);
    assert.equal(await promise, ERROR.cancel);
    assert.equal(connection.streamCount, 0);
  });

  test('finishes open streams after drain, and then ends the connection', async (context) => {
    let open: Http2Stream | undefined;
    const { session, connection } = await startPair(context, (connection, stream) => {
      answer(connection, stream, 200);
      open = stream;
      return consumerOf({});
    });
    const request = session.request({});
    await once(request, 'response');
    const goaway = once(session, 'goaway');
    const closed = once(session, 'close');
    connection.drain();
    assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR);
    connection.sendData(open as Http2Stream, linesOf('late'), 0, 4, true);
    connection.flush();
    assert.equal(String(await bodyOf(request)), 'late');
    await closed;
  });

  test('exchanges any fields in both directions on one connection', async (context) => {
    const { session } = await startPair(context, (connection, stream, { fields }) => {
      let lines = '';
      for (let index = 0; index < fields.count; index += 1) {
        const name = fields.nameText(index);
        if (name.startsWith('x-')) lines += `${name}: ${fields.valueText(index)}\r\n`;
      }
      answer(connection, stream, 200, lines, true);
      return consumerOf({});
    });
    const name = fc.stringMatching(/^x-[a-z0-9]{1,30}$/);
    const value = fc.stringMatching(/^([!-~]([ -~]{0,80}[!-~])?)?$/);
    const fields = fc.dictionary(name, value, { minKeys: 1, maxKeys: 12, noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(fields, async (sent) => {
        // The second exchange of equal fields comes from the tables of both sides.
        for (const _ of [1, 2, 3]) {
          const [headers] = await once(session.request(sent), 'response');
          const received = Object.entries(headers).filter(([each]) => each.startsWith('x-'));
          assert.deepEqual(Object.fromEntries(received), sent);
        }
      }),
      { numRuns: 150 },
    );
  });
});
