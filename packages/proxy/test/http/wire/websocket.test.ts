// Tests WebSocket connections of clients of HTTP/1.1 (RFC 6455) and of HTTP/2 (RFC 8441) through a real proxy, with the
// package `ws` on both sides.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { after, before, describe, suite, test } from 'node:test';
import { eventually } from '@weir/testkit';
import fc from 'fast-check';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing, webService } from '../../fixtures/services.ts';
import {
  MAX_MESSAGE_BYTES,
  nextMessage,
  openWebSocket,
  type WebSocketEndpoint,
  type WebSocketTarget,
  webSocket,
  webSocketEndpoint,
  webSocketSession,
} from '../../fixtures/websocket.ts';

const MIB = 1024 * 1024;

interface Version {
  readonly name: string;
  /** How many random messages are echoed. */
  readonly echoCases: number;
}

const VERSIONS: readonly Version[] = [
  { name: 'HTTP/1.1', echoCases: 500 },
  { name: 'HTTP/2', echoCases: 200 },
];

const MESSAGE = fc.record({
  data: fc.uint8Array({ maxLength: 70_000, size: 'max' }),
  isBinary: fc.boolean(),
  fragments: fc.integer({ min: 1, max: 4 }),
  pings: fc.boolean(),
});

describe('WebSocket', () => {
  let fleet: Fleet;
  let backend: WebSocketEndpoint;
  before(async () => {
    backend = await webSocketEndpoint();
    fleet = await startFleet();
    await startServing(fleet, webService([backend.endpoint], { settings: { httpPorts: [PORT] } }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await backend[Symbol.asyncDispose]();
  });
  const proxy = (): { host: string; port: number } => ({ host: fleet.addressOf(), port: PORT });

  for (const { name, echoCases } of VERSIONS) {
    suite(name, () => {
      let target: WebSocketTarget;
      before(async () => {
        target = name === 'HTTP/2' ? await webSocketSession(proxy()) : proxy();
      });
      after(() => {
        if ('destroy' in target) target.destroy();
      });

      test(`echoes ${echoCases} messages: text and binary, in fragments, with pings between the fragments`, async () => {
        const socket = await openWebSocket(target);
        let pongs = 0;
        let pings = 0;
        socket.on('pong', () => {
          pongs += 1;
        });
        await fc.assert(
          fc.asyncProperty(MESSAGE, async ({ data, isBinary, fragments, pings: withPings }) => {
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
          { numRuns: echoCases },
        );
        await eventually(() => assert.equal(pongs, pings));
        socket.close();
        await once(socket, 'close');
      });

      test('echoes messages of 1 MiB and 16 MiB', async () => {
        const socket = await openWebSocket(target);
        for (const length of [MIB, MAX_MESSAGE_BYTES]) {
          const bytes = randomBytes(length);
          const echoed = nextMessage(socket);
          socket.send(bytes);
          const [received] = await echoed;
          assert.ok(received.equals(bytes));
        }
        socket.close();
        await once(socket, 'close');
      });

      test('relays what the endpoint sends at once, the subprotocol, and close codes of both sides', async () => {
        const greeted = webSocket(target, { path: '/greet', protocols: ['echo', 'other'] });
        const [greeting] = await nextMessage(greeted);
        assert.deepEqual([greeting.toString(), greeted.protocol], ['hello', 'echo']);
        greeted.send('close me');
        const [code, reason] = (await once(greeted, 'close')) as [number, Buffer];
        assert.deepEqual([code, reason.toString()], [4001, 'asked for']);
        const closing = await openWebSocket(target);
        const [endpointSocket] = [...backend.server.clients].slice(-1);
        assert.ok(endpointSocket !== undefined);
        const closed = once(endpointSocket, 'close');
        closing.close(4002, 'done');
        const [endpointCode, endpointReason] = (await closed) as [number, Buffer];
        assert.deepEqual([endpointCode, endpointReason.toString()], [4002, 'done']);
      });

      test('relays an answer that refuses the upgrade', async () => {
        const socket = webSocket(target, { path: '/refuse' });
        const [error] = (await once(socket, 'error')) as [Error];
        assert.match(error.message, /Unexpected server response: 401/);
      });
    });
  }

  test('accepts extended CONNECT with 200 and without the fields of the handshake of HTTP/1.1', async (context) => {
    const session = await webSocketSession(proxy());
    context.after(() => session.destroy());
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
  });
});
