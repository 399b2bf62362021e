import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, type ServiceLimits, type ServiceSettings } from '@weir/model';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { FAILING_WORKER, failWorkers } from '../fixtures/failing-worker.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';

const WORKERS = 2;

test('limits the connections of a tenant over all workers and Services, and admits one when another ends', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  fleet.limit('shop', { connections: 3 });
  await fleet.serve(
    webService([endpointOf(backend)]),
    webService([endpointOf(backend)], { name: 'api', port: PORT + 1 }),
  );
  const proxy = await ready(fleet);
  const open: TestClient[] = [];
  for (const port of [PORT, PORT + 1, PORT]) open.push(await echoing(fleet, port));
  assert.equal(await isRefused(fleet, PORT), true);
  assert.equal(await isRefused(fleet, PORT + 1), true);
  await open[0]?.close();
  await eventually(async () => assert.equal(await isRefused(fleet, PORT), false));
  const refused = (name: string): number => outcomesFor(proxy, name)?.['connection-limit'] ?? 0;
  await eventually(() => assert.ok(refused('web') >= 1));
  assert.equal(refused('api'), 1);
  await eventually(async () => assert.deepEqual((await fleet.usage()).api?.refused, { 'connection-limit': 1 }));
  for (const client of open) await client.close();
});

test('limits the connections of a Service without affecting other Services of the tenant', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(
    webService([endpointOf(backend)], { settings: limits({ connections: 1 }) }),
    webService([endpointOf(backend)], { name: 'api', port: PORT + 1 }),
  );
  await ready(fleet);
  await using _open = await echoing(fleet, PORT);
  assert.equal(await isRefused(fleet, PORT), true);
  assert.equal(await isRefused(fleet, PORT + 1), false);
});

test('limits the connections of each client of a Service separately', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)], { settings: limits({ connectionsPerClient: 2 }) }));
  const proxy = await ready(fleet);
  await using first = await echoing(fleet, PORT);
  await using _second = await echoing(fleet, PORT);
  assert.equal(await isRefused(fleet, PORT), true);
  assert.equal(await isRefused(fleet, PORT, '127.0.0.77'), false);
  await eventually(() => assert.equal(outcomesFor(proxy)?.['client-limit'], 1));
  await first.close();
  await eventually(async () => assert.equal(await isRefused(fleet, PORT), false));
});

test('refuses new connections above the tenant’s rate, and admits them after a while', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  fleet.limit('shop', { newConnectionsPerSecond: 4 });
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await ready(fleet);
  const startedAt = performance.now();
  const attempts = await Promise.all(Array.from({ length: 40 }, () => isRefused(fleet, PORT)));
  const served = attempts.filter((isOver) => !isOver).length;
  const seconds = (performance.now() - startedAt) / 1_000;
  assert.ok(served >= 4 && served <= 4 + Math.ceil(seconds * 4), `${served} in ${seconds} s`);
  assert.equal(outcomesFor(proxy)?.['rate-limit'], 40 - served);
  await eventually(async () => assert.equal(await isRefused(fleet, PORT), false));
});

test('limits the new connections of a Service, and those of each client, apart from other Services and clients', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const [rate, clientRate] = [4, 2];
  await fleet.serve(
    webService([endpointOf(backend)], { settings: limits({ newConnectionsPerSecond: rate }) }),
    webService([endpointOf(backend)], {
      name: 'api',
      port: PORT + 1,
      settings: limits({ newConnectionsPerSecondPerClient: clientRate }),
    }),
  );
  const proxy = await ready(fleet);
  for (const { name, port, perSecond, reason } of [
    { name: 'web', port: PORT, perSecond: rate, reason: 'rate-limit' },
    // Within one second, a client may open twice as many connections.
    { name: 'api', port: PORT + 1, perSecond: 2 * clientRate, reason: 'client-limit' },
  ] as const) {
    const startedAt = performance.now();
    const attempts = await Promise.all(Array.from({ length: 40 }, () => isRefused(fleet, port)));
    const served = attempts.filter((isOver) => !isOver).length;
    const seconds = (performance.now() - startedAt) / 1_000;
    assert.ok(served >= clientRate && served <= Math.ceil(1 + seconds) * perSecond, `${served} in ${seconds} s`);
    assert.equal(outcomesFor(proxy, name)?.[reason], 40 - served);
  }
  assert.equal(await isRefused(fleet, PORT + 1, '127.0.0.77'), false);
  await eventually(async () => assert.equal(await isRefused(fleet, PORT), false));
});

test('releases the connections of a worker that died', async () => {
  await using fleet = await startFleet({ nodes: ['dying'] });
  await using backend = await echoServer();
  fleet.limit('shop', { connections: 1 });
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await fleet.proxy({ node: 'dying', workerEntry: FAILING_WORKER });
  await proxy.ready;
  const at = { addressOf: () => fleet.addressOf('dying') };
  await using open = await echoing(at, PORT);
  assert.equal(await isRefused(at, PORT), true);
  failWorkers('dying', 'throw');
  await open.ended;
  await eventually(async () => assert.equal(await isRefused(at, PORT), false));
});

test('half-closed connections whose bytes are in the kernel count against the limit, and a Suspension resets them', async () => {
  await using fleet = await startFleet();
  await using backend = await respondingServer(KERNEL_BYTES);
  fleet.limit('shop', { connections: 2 });
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await ready(fleet);
  const clients = Array.from({ length: 100 }, () => new HalfClosedClient(fleet));
  try {
    await eventually(() => {
      assert.equal(outcomesFor(proxy)?.['connection-limit'], 98);
      // Both sides have ended the connections.
      assert.equal(backend.endedConnections, 2);
    });
    assert.equal(outcomesFor(proxy)?.completed, undefined);
    await fleet.cutOff({ kind: 'tenant', tenant: 'shop' });
    await eventually(() => assert.equal(outcomesFor(proxy)?.['cut-off'], 2));
    const received = (await Promise.all(clients.map((client) => client.readToEnd()))).filter((bytes) => bytes > 0);
    assert.equal(received.length, 2);
    for (const bytes of received) assert.ok(bytes < KERNEL_BYTES, `${bytes} bytes`);
  } finally {
    for (const client of clients) client.socket.destroy();
  }
});

/** More than the kernel of a client that does not read accepts, and fewer than the kernels of both sides hold. */
const KERNEL_BYTES = 150_000;

/** A server that sends `bytes` bytes and FIN after the client's FIN. */
async function respondingServer(bytes: number) {
  let endedConnections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('close', () => {
      endedConnections += 1;
    });
    socket.resume().on('end', () => socket.end(Buffer.alloc(bytes)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address: host, port } = server.address() as AddressInfo;
  return {
    host,
    port,
    get endedConnections() {
      return endedConnections;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}

/** A client that sends FIN, and reads nothing before `readToEnd`. */
class HalfClosedClient {
  readonly socket: Socket;
  readonly #closed: Promise<unknown>;

  constructor(fleet: Fleet) {
    this.socket = connect({ host: fleet.addressOf(), port: PORT, allowHalfOpen: true }).pause();
    this.socket.on('error', () => undefined);
    this.#closed = new Promise((resolve) => this.socket.once('close', resolve));
    this.socket.end();
  }

  /** Returns how many bytes the client has received before the connection was reset. */
  async readToEnd(): Promise<number> {
    this.socket.resume();
    await this.#closed;
    return this.socket.bytesRead;
  }
}

function limits(some: Partial<ServiceLimits>): Partial<ServiceSettings> {
  return { limits: { ...DEFAULT_SERVICE_SETTINGS.limits, ...some } };
}

async function ready(fleet: Fleet): Promise<RunningProxy> {
  const proxy = await fleet.proxy({ workers: WORKERS });
  await proxy.ready;
  return proxy;
}

async function echoing(fleet: Pick<Fleet, 'addressOf'>, port: number): Promise<TestClient> {
  const client = await connectClient({ host: fleet.addressOf(), port });
  await client.send('x');
  await client.take(1);
  return client;
}

/** Reports whether a new connection is refused. */
async function isRefused(fleet: Pick<Fleet, 'addressOf'>, port: number, localAddress?: string): Promise<boolean> {
  try {
    await using client = await connectClient({ host: fleet.addressOf(), port, ...(localAddress && { localAddress }) });
    await client.send('x');
    await client.take(1);
    return false;
  } catch {
    return true;
  }
}
