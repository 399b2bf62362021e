// Tests that the bandwidth limits apply to HTTP responses. Asserts only minimum durations, because a busy machine can take longer.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, get, type Server } from 'node:http';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS } from '@weir/model';
import { WebSocket, WebSocketServer } from 'ws';
import { NARROW_READ_BYTES } from '../../../src/transport/tcp/read-memory.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing, webService } from '../../fixtures/services.ts';

const BYTES_PER_SECOND = 2_000_000;
/** The bytes that may pass without a wait: as many as the limit allows in 50 ms. */
const BURST = BYTES_PER_SECOND * 0.05;
/** The size of one more read, after which the endpoint is paused. */
const SLICE = NARROW_READ_BYTES;
const BODY_BYTES = 1_500_000;
const SMALL_BYTES = 20_000;
const SMALL_COUNT = 75;

const server: Server = createServer(
  (request, response) => void response.end(Buffer.alloc(request.url === '/small' ? SMALL_BYTES : BODY_BYTES)),
);
new WebSocketServer({ server }).on('connection', (socket) => socket.send(Buffer.alloc(BODY_BYTES)));
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(() => {
  server.closeAllConnections();
  server.close();
});

test('slows down responses of HTTP/1.1 to the limit of the tenant', async () => {
  await using fleet = await startFleet();
  await serve(fleet);
  const startedAt = performance.now();
  const request = get({ host: fleet.addressOf(), port: PORT, headers: { host: 'shop.example' }, agent: false });
  const [response] = (await once(request, 'response')) as [Readable];
  await assertSlow(response, startedAt);
});

test('slows down responses of HTTP/2 to the limit of the tenant', async () => {
  await using fleet = await startFleet();
  await serve(fleet);
  const startedAt = performance.now();
  const client = connect(`http://${fleet.addressOf()}:${PORT}`);
  await assertSlow(client.request({ ':path': '/' }), startedAt);
  client.close();
});

test('slows down small responses to requests that follow each other', async () => {
  await using fleet = await startFleet();
  await serve(fleet);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const startedAt = performance.now();
  for (let count = 0; count < SMALL_COUNT; count += 1) {
    const request = get({
      host: fleet.addressOf(),
      port: PORT,
      path: '/small',
      headers: { host: 'shop.example' },
      agent,
    });
    const [response] = (await once(request, 'response')) as [Readable];
    assert.equal(await lengthOf(response), SMALL_BYTES);
  }
  agent.destroy();
  assertMinDuration(startedAt, SMALL_COUNT * SMALL_BYTES);
});

test('slows down small responses of HTTP/2 to simultaneous requests', async () => {
  await using fleet = await startFleet();
  await serve(fleet);
  const startedAt = performance.now();
  const client = connect(`http://${fleet.addressOf()}:${PORT}`);
  for (let count = 0; count < SMALL_COUNT; count += 5) {
    const requests = Array.from({ length: 5 }, () => lengthOf(client.request({ ':path': '/small' })));
    assert.deepEqual(await Promise.all(requests), new Array(5).fill(SMALL_BYTES));
  }
  client.close();
  assertMinDuration(startedAt, SMALL_COUNT * SMALL_BYTES);
});

test('slows down a WebSocket to the limit of the tenant', async () => {
  await using fleet = await startFleet();
  await serve(fleet);
  const startedAt = performance.now();
  const socket = new WebSocket(`ws://${fleet.addressOf()}:${PORT}`);
  const [message] = (await once(socket, 'message')) as [Buffer];
  assert.equal(message.length, BODY_BYTES);
  assertMinDuration(startedAt, BODY_BYTES);
  socket.terminate();
});

test('slows down responses of HTTP/2 to the limit of their Service, if the connection belongs to another Service', async () => {
  await using fleet = await startFleet();
  const shared = { port: PORT, endpoints: [endpoint()], shared: true };
  const limits = { ...DEFAULT_SERVICE_SETTINGS.limits, outBitsPerSecond: BYTES_PER_SECOND * 8 };
  await startServing(
    fleet,
    { ...shared, name: 'fast', settings: { httpPorts: [PORT], hosts: ['fast.example'] } },
    { ...shared, name: 'slow', settings: { httpPorts: [PORT], hosts: ['slow.example'], limits } },
  );
  const client = connect(`http://${fleet.addressOf()}:${PORT}`);
  assert.equal(await lengthOf(client.request({ ':authority': 'fast.example', ':path': '/small' })), SMALL_BYTES);
  const startedAt = performance.now();
  await assertSlow(client.request({ ':authority': 'slow.example', ':path': '/' }), startedAt);
  client.close();
});

function endpoint(): { readonly address: string; readonly port: number } {
  return { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

async function serve(fleet: Fleet): Promise<void> {
  fleet.limit('shop', { outBitsPerSecond: BYTES_PER_SECOND * 8 });
  await startServing(fleet, webService([endpoint()], { settings: { httpPorts: [PORT] } }));
}

/** Reads the response, and asserts that it took as long as the limit demands. */
async function assertSlow(response: Readable, startedAt: number): Promise<void> {
  assert.equal(await lengthOf(response), BODY_BYTES);
  assertMinDuration(startedAt, BODY_BYTES);
}

async function lengthOf(response: Readable): Promise<number> {
  let received = 0;
  for await (const part of response) received += (part as Buffer).length;
  return received;
}

function assertMinDuration(startedAt: number, bytes: number): void {
  const seconds = (performance.now() - startedAt) / 1_000;
  const minSeconds = (bytes - BURST - SLICE) / BYTES_PER_SECOND;
  assert.ok(seconds >= minSeconds, `${seconds} s of at least ${minSeconds} s`);
}
