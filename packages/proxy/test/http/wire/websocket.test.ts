// Tests WebSocket connections (RFC 6455) through a real proxy, with the package `ws` on both sides.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import fc from 'fast-check';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { RunningProxy } from '../../../src/index.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { outcomesFor, startServing, webService } from '../../fixtures/services.ts';

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const ECHO_CASES = 500;

describe('WebSocket', () => {
  let fleet: Fleet;
  let proxy: RunningProxy;
  const httpServer = createServer((_request, response) => response.writeHead(400).end());
  const server = new WebSocketServer({
    server: httpServer,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: () => 'echo',
    verifyClient: ({ req }: { readonly req: IncomingMessage }) => req.url !== '/refuse',
  });
  server.on('connection', (socket, request) => {
    if (request.url === '/greet') socket.send('hello');
    socket.on('message', (data, isBinary) => {
      if (String(data) === 'close me') socket.close(4001, 'asked for');
      else socket.send(data, { binary: isBinary });
    });
  });
  before(async () => {
    httpServer.listen(0, '127.0.0.1');
    await once(httpServer, 'listening');
    fleet = await startFleet();
    const endpoint = { address: '127.0.0.1', port: (httpServer.address() as AddressInfo).port };
    proxy = await startServing(fleet, webService([endpoint], { settings: { httpPorts: [PORT] } }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    for (const client of server.clients) client.terminate();
    httpServer.close();
  });

  const open = async (path = '/', protocols: string[] = []): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://${fleet.addressOf()}:${PORT}${path}`, protocols, {
      maxPayload: MAX_MESSAGE_BYTES,
    });
    await once(socket, 'open');
    return socket;
  };

  const nextMessage = async (socket: WebSocket): Promise<readonly [Buffer, boolean]> => {
    const [data, isBinary] = (await once(socket, 'message')) as [RawData, boolean];
    return [data as Buffer, isBinary];
  };

  test(`echoes ${ECHO_CASES} messages: text and binary, in fragments, with pings between the fragments`, async () => {
    const socket = await open();
    const message = fc.record({
      data: fc.uint8Array({ maxLength: 70_000, size: 'max' }),
      isBinary: fc.boolean(),
      fragments: fc.integer({ min: 1, max: 4 }),
      pings: fc.boolean(),
    });
    let pongs = 0;
    let pings = 0;
    socket.on('pong', () => {
      pongs += 1;
    });
    await fc.assert(
      fc.asyncProperty(message, async ({ data, isBinary, fragments, pings: withPings }) => {
        const bytes = isBinary ? Buffer.from(data) : Buffer.from(Buffer.from(data).toString('base64'));
        const echoed = nextMessage(socket);
        const step = Math.ceil(bytes.length / fragments);
        for (let index = 0; index < fragments; index += 1) {
          const part = bytes.subarray(index * step, (index + 1) * step);
          socket.send(part, { binary: isBinary, fin: index === fragments - 1 });
          if (!withPings) continue;
          pings += 1;
          socket.ping(String(index));
        }
        const [received, receivedBinary] = await echoed;
        assert.equal(receivedBinary, isBinary);
        assert.ok(received.equals(bytes));
      }),
      { numRuns: ECHO_CASES },
    );
    await eventually(() => assert.equal(pongs, pings));
    socket.close();
    await once(socket, 'close');
  });

  test('echoes a message of 16 MiB', async () => {
    const socket = await open();
    const bytes = randomBytes(MAX_MESSAGE_BYTES);
    socket.send(bytes);
    const [received] = await nextMessage(socket);
    assert.ok(received.equals(bytes));
    socket.close();
    await once(socket, 'close');
  });

  test('relays what the endpoint sends with the answer 101, the subprotocol, and close codes of both sides', async () => {
    const greeted = new WebSocket(`ws://${fleet.addressOf()}:${PORT}/greet`, ['echo', 'other']);
    const [greeting] = await nextMessage(greeted);
    assert.deepEqual([greeting.toString(), greeted.protocol], ['hello', 'echo']);
    greeted.send('close me');
    const [code, reason] = (await once(greeted, 'close')) as [number, Buffer];
    assert.deepEqual([code, reason.toString()], [4001, 'asked for']);
    const closing = await open();
    const [endpointSocket] = [...server.clients].slice(-1);
    assert.ok(endpointSocket !== undefined);
    const closed = once(endpointSocket, 'close');
    closing.close(4002, 'done');
    const [endpointCode, endpointReason] = (await closed) as [number, Buffer];
    assert.deepEqual([endpointCode, endpointReason.toString()], [4002, 'done']);
  });

  test('relays an answer that refuses the upgrade', async () => {
    const socket = new WebSocket(`ws://${fleet.addressOf()}:${PORT}/refuse`);
    const [error] = (await once(socket, 'error')) as [Error];
    assert.match(error.message, /Unexpected server response: 401/);
  });

  test('echoes messages of HTTP/2 clients (RFC 8441), and refuses what no endpoint accepts', async () => {
    const session = connect(`http://${fleet.addressOf()}:${PORT}`);
    await once(session, 'remoteSettings');
    assert.equal(session.remoteSettings.enableConnectProtocol, true);
    const request = (path: string): ClientHttp2Stream =>
      session.request({
        ':method': 'CONNECT',
        ':protocol': 'websocket',
        ':path': path,
        'sec-websocket-version': '13',
        'sec-websocket-protocol': 'echo',
      });
    const stream = request('/greet');
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    assert.deepEqual([headers[':status'], headers['sec-websocket-protocol']], [200, 'echo']);
    assert.equal(headers['sec-websocket-accept'], undefined);
    let received = Buffer.alloc(0);
    stream.on('data', (part: Buffer) => {
      received = Buffer.concat([received, part]);
    });
    // RFC 6455 §5.2: the frame of a text message, masked with zeros.
    const text = randomBytes(30_000).toString('hex');
    const frame = Buffer.concat([
      Buffer.from([0x81, 0xfe, text.length >> 8, text.length & 0xff, 0, 0, 0, 0]),
      Buffer.from(text),
    ]);
    stream.write(frame);
    const expected = Buffer.concat([
      Buffer.from([0x81, 5]),
      Buffer.from('hello'),
      Buffer.from([0x81, 126, text.length >> 8, text.length & 0xff]),
      Buffer.from(text),
    ]);
    await eventually(() => assert.equal(received.length, expected.length));
    assert.ok(received.equals(expected));
    stream.end();
    await once(stream, 'close');
    const refused = request('/refuse');
    const [answer] = (await once(refused, 'response')) as [IncomingHttpHeaders];
    assert.equal(answer[':status'], 401);
    refused.destroy();
    session.destroy();
  });

  test('resets open connections when the Service is suspended', async () => {
    const socket = await open();
    const before = outcomesFor(proxy)?.['cut-off'] ?? 0;
    await fleet.cutOff({ kind: 'namespace', namespace: 'shop' });
    const [code] = (await once(socket, 'close')) as [number];
    assert.equal(code, 1006);
    await eventually(() => assert.ok((outcomesFor(proxy)?.['cut-off'] ?? 0) > before));
  });
});
