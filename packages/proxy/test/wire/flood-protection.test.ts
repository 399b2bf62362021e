// Tests that the clients of one tenant cannot harm another tenant. Each test checks a quiet tenant during a flood.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { type ByteCountingServer, connectClient, echoServer, eventually, patternServer } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';

const LOUD: Partial<TestService> = { tenant: 'loud', namespace: 'loud' };
const QUIET_PORT = PORT + 1;

test('silent connections use up only the limit of their tenant, and only for a while', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  fleet.limit('loud', { connections: 40 });
  const proxy = await besideQuiet(fleet, backend, { ...LOUD, settings: { idleTimeoutMs: 1 } });
  await using crowd = new ClientFlood();
  await answersMeanwhile(fleet, async () => {
    await Promise.all(Array.from({ length: 400 }, () => crowd.join(fleet.addressOf())));
    await eventually(() => assert.equal(outcomesFor(proxy)?.['connection-limit'], 360));
  });
  await eventually(() => assert.equal(outcomesFor(proxy)?.['idle-timeout'], 40));
  await eventually(() => assert.equal(backend.openConnections, 0));
});

test('refuses a flood of new connections above the rate, and leaks nothing', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  fleet.limit('loud', { newConnectionsPerSecond: 10 });
  const proxy = await besideQuiet(fleet, backend, LOUD);
  await using crowd = new ClientFlood();
  const startedAt = performance.now();
  const rounds = await answersMeanwhile(fleet, async () => {
    for (let wave = 0; wave < 10; wave += 1) {
      await Promise.all(Array.from({ length: 100 }, () => crowd.join(fleet.addressOf())));
    }
    await eventually(() => assert.ok((outcomesFor(proxy)?.['rate-limit'] ?? 0) + crowd.size === 1_000));
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  assert.ok(crowd.size <= 10 * (seconds + 1), `${crowd.size} in ${seconds} s`);
  assert.ok(rounds > 0);
});

test('half-closed connections that endpoints do not answer count until the idle timeout', async () => {
  await using fleet = await startFleet();
  await using backend = await neverEnding();
  fleet.limit('loud', { connections: 5 });
  await using echo = await echoServer();
  const proxy = await besideQuiet(fleet, echo, {
    ...LOUD,
    endpoints: [endpointOf(backend)],
    settings: { idleTimeoutMs: 1 },
  });
  await answersMeanwhile(fleet, async () => {
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
        await client.end();
        assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
      }),
    );
  });
  assert.equal(outcomesFor(proxy)?.['idle-timeout'], 5);
});

test('connections with a slow ClientHello count towards the limit of their tenant', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  fleet.limit('loud', { connections: 20 });
  const proxy = await besideQuiet(fleet, backend, { ...LOUD, settings: { tlsPassthrough: true } });
  await using crowd = new ClientFlood();
  await answersMeanwhile(fleet, async () => {
    await Promise.all(Array.from({ length: 60 }, () => crowd.join(fleet.addressOf(), Buffer.of(0x16))));
    await eventually(() => assert.equal(outcomesFor(proxy)?.['connection-limit'], 40));
  });
  await eventually(() => assert.equal(backend.openConnections, 0, 'only the neighbour reaches an endpoint'));
});

test('clients that never read pause their endpoints and use bounded memory', async () => {
  const CLIENTS = 30;
  await using fleet = await startFleet();
  await using flood = await patternServer({ bytes: 2 ** 40 });
  await using echo = await echoServer();
  await besideQuiet(fleet, echo, { ...LOUD, endpoints: [endpointOf(flood)] });
  await using crowd = new ClientFlood();
  await answersMeanwhile(fleet, async () => {
    const before = process.memoryUsage.rss();
    await Promise.all(Array.from({ length: CLIENTS }, () => crowd.join(fleet.addressOf(), 'unread')));
    // Waits until no data moves. All sent bytes are then in kernel buffers, except for one read per connection in the
    // proxy.
    let sent = -1;
    await eventually(
      () => {
        const stood = sent === flood.sent && flood.openConnections === CLIENTS;
        sent = flood.sent;
        assert.ok(stood, `${sent} bytes were sent`);
      },
      { timeoutMs: 30_000, intervalMs: 300 },
    );
    const grown = process.memoryUsage.rss() - before;
    assert.ok(grown < CLIENTS * 1_048_576 + 100e6, `${grown} bytes`);
  });
});

/** A flood of clients that connect and send at most one message. A client with `unread` does not read either. */
class ClientFlood implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();

  /** The number of sockets that are still open, because they were not refused. */
  get size(): number {
    return this.#sockets.size;
  }

  async join(host: string, first?: Uint8Array | 'unread'): Promise<void> {
    const socket = connect({ host, port: PORT });
    if (first === 'unread') socket.pause();
    else socket.resume();
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
    if (first instanceof Uint8Array) socket.write(first);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Starts a proxy with one worker that serves a Service of a loud tenant and an echo Service of a quiet tenant. */
async function besideQuiet(fleet: Fleet, echo: ByteCountingServer, loud: Partial<TestService>): Promise<RunningProxy> {
  const quiet = webService([endpointOf(echo)], { name: 'quiet', namespace: 'quiet', port: QUIET_PORT });
  return startServing(fleet, webService([endpointOf(echo)], loud), quiet);
}

/** Runs `act`, and returns how many echoes a client of the quiet tenant received while `act` ran. */
async function answersMeanwhile(fleet: Fleet, act: () => Promise<void>): Promise<number> {
  await using client = await connectClient({ host: fleet.addressOf(), port: QUIET_PORT });
  let isOver = false;
  let rounds = 0;
  const asking = (async () => {
    while (!isOver || rounds === 0) {
      await client.send('ping');
      await client.take(4);
      rounds += 1;
    }
  })();
  try {
    await act();
  } finally {
    isOver = true;
  }
  await asking;
  return rounds;
}

/** Starts a server that reads everything, and answers neither data nor a FIN. */
async function neverEnding(): Promise<AsyncDisposable & { readonly host: string; readonly port: number }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.resume();
  });
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const { address: host, port } = server.address() as { address: string; port: number };
  return {
    host,
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
