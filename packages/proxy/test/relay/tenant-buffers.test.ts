import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { type ByteCountingServer, connectClient, eventually, patternServer } from '@weir/testkit';
import { insideNamespace } from '@weir/tools';
import { Limiter } from '../../src/limits/limiter.ts';
import { createLimiterMemory, LimiterState } from '../../src/limits/limiter-state.ts';
import {
  MAX_TENANT_BYTES,
  MAX_WORKER_BYTES,
  MIN_TENANT_BYTES,
  SHARES_WITH_REDUCED_WINDOWS,
  WorkerBuffers,
} from '../../src/limits/tenant-buffers.ts';
import { ACTIVE } from '../../src/metering/counters.ts';
import { epollTransport } from '../../src/transport/tcp/epoll-transport.ts';
import type { TcpStream, TcpTransport } from '../../src/transport/tcp-transport.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const READERS = 600;
const ENDLESS = 2 ** 40;
const UPLOAD = Buffer.alloc(8_000_000);

/**
 * By default, the send buffer of each endpoint's socket grows to megabytes. These buffers together exceed `net.ipv4.tcp_mem`, and the kernel
 * then refuses memory to the sockets of all tests.
 */
const namespace = insideNamespace({ sysctls: { 'net/ipv4/tcp_wmem': '4096 16384 262144' } });

test('a tenant gets reduced windows above its share, small windows above two shares, and larger windows below half of that', () => {
  const buffers = new WorkerBuffers();
  const tenant = buffers.of(limiter());
  tenant.add(MAX_TENANT_BYTES);
  assert.equal(tenant.window, 'full');
  tenant.add(1);
  assert.equal(tenant.window, 'reduced');
  tenant.add(MAX_TENANT_BYTES);
  assert.equal(tenant.window, 'small');
  tenant.add(-MAX_TENANT_BYTES);
  assert.equal(tenant.window, 'small');
  tenant.add(-1);
  assert.equal(tenant.window, 'reduced');
  tenant.add(-MAX_TENANT_BYTES / 2);
  assert.equal(tenant.window, 'reduced');
  tenant.add(-1);
  assert.equal(tenant.window, 'full');
});

test('while a worker buffers too much, a tenant with few bytes keeps full windows', () => {
  const buffers = new WorkerBuffers();
  for (let bytes = 0; bytes < MAX_WORKER_BYTES; bytes += MAX_TENANT_BYTES) buffers.of(limiter()).add(MAX_TENANT_BYTES);
  const [quiet, loud] = [buffers.of(limiter()), buffers.of(limiter())];
  quiet.add(MIN_TENANT_BYTES);
  assert.equal(quiet.window, 'full');
  loud.add(MIN_TENANT_BYTES + 1);
  assert.equal(loud.window, 'reduced');
});

for (const { direction, slow, maxBytesPerReader } of [
  // Small windows of both sides, with the overhead of the kernel.
  { direction: 'clients that do not read', slow: 'client', maxBytesPerReader: 26_000 },
  // The first window of an accepted connection has 64 KiB.
  { direction: 'endpoints that do not read', slow: 'endpoint', maxBytesPerReader: 110_000 },
] as const) {
  test(`${direction} take two shares of their tenant, and small windows beyond`, namespace, async () => {
    await using endpoint = await (slow === 'client' ? patternServer({ bytes: ENDLESS }) : silentServer());
    const { transport, bufferedBytes } = observed(epollTransport);
    using worker = await startWorkerInTest(webService([endpointOf(endpoint)]), { transport });
    const clients = new Set<Socket>();
    try {
      for (let count = 0; count < READERS; count += 1) clients.add(await slowClient(worker, slow));
      let before = -1;
      await eventually(
        () => {
          worker.tick(1);
          const now = bufferedBytes();
          const growth = now - before;
          before = now;
          assert.equal(worker.row[ACTIVE], READERS);
          assert.ok(growth < now / 100, 'the buffers still grow');
        },
        { timeoutMs: 30_000, intervalMs: 300 },
      );
      const limit = (SHARES_WITH_REDUCED_WINDOWS + 0.25) * MAX_TENANT_BYTES + READERS * maxBytesPerReader;
      assert.ok(before <= limit, `${before} bytes are buffered, expected at most ${limit}`);
      if (slow === 'client') await readsOn(clients, worker, endpoint as ByteCountingServer);
    } finally {
      for (const client of clients) client.destroy();
    }
  });
}

/** A client with a small window receives bytes as soon as it reads, and the tenant has full windows when the slow clients are gone. */
async function readsOn(clients: Set<Socket>, worker: WorkerInTest, source: ByteCountingServer): Promise<void> {
  const last = [...clients].at(-1) as Socket;
  let received = 0;
  last.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  last.resume();
  await eventually(() => assert.ok(received > 2_000_000, `${received} bytes`));
  for (const client of clients) client.destroy();
  clients.clear();
  await eventually(() => assert.equal(source.openConnections, 0));
  await using client = await connectClient({ host: worker.host, port: worker.port, expectPattern: 0 });
  await client.waitForBytes(20_000_000);
}

function limiter(): Limiter {
  return new Limiter(new LimiterState(createLimiterMemory(1).state), { row: 0, workerSlot: 0 });
}

async function slowClient({ host, port }: WorkerInTest, slow: 'client' | 'endpoint'): Promise<Socket> {
  const socket = connect({ host, port }).pause();
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (slow === 'endpoint') socket.write(UPLOAD);
  return socket;
}

/** A server that reads nothing. */
async function silentServer(): Promise<{ readonly host: string; readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address: host, port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  return { host, port, [Symbol.asyncDispose]: close };
}

/** Returns a transport, and the sum of the bytes that its open streams buffer. */
function observed(inner: TcpTransport): { readonly transport: TcpTransport; bufferedBytes(): number } {
  const streams: TcpStream[] = [];
  const keep = <T extends TcpStream>(stream: T): T => {
    streams.push(stream);
    return stream;
  };
  return {
    transport: {
      turns: inner.turns,
      listen: (at, events) =>
        inner.listen(at, {
          onListening: () => events.onListening(),
          onFailed: (code) => events.onFailed(code),
          onAcceptError: (code) => events.onAcceptError(code),
          onConnection: (stream) => events.onConnection(keep(stream)),
        }),
      connect: (to, events, window) => keep(inner.connect(to, events, window)),
    },
    bufferedBytes: () => streams.reduce((sum, stream) => sum + (stream.bufferedBytes?.() ?? 0), 0),
  };
}
