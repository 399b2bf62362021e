// Tests to how many endpoints the proxy tries to connect one client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Endpoint, endpointKey } from '@weir/model';
import { connectClient, echoServer, freePort } from '@weir/testkit';
import { netTransport } from '../../src/transport/tcp/net-transport.ts';
import type { TcpTransport } from '../../src/transport/tcp-transport.ts';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };

/** Returns endpoints that refuse connections. */
async function deadEndpoints(count: number): Promise<readonly Endpoint[]> {
  const port = await freePort();
  return Array.from({ length: count }, (_, index) => ({ address: `127.9.${index >> 8}.${index & 255}`, port }));
}

interface AttemptScenario extends Disposable {
  readonly worker: WorkerInTest;
  /** The keys of the endpoints to which the worker has tried to connect. */
  readonly attempts: readonly string[];
  exclude(endpoints: readonly Endpoint[]): void;
}

async function serve(endpoints: readonly Endpoint[]): Promise<AttemptScenario> {
  const attempts: string[] = [];
  const transport: TcpTransport = {
    ...netTransport,
    connect(to, events) {
      attempts.push(endpointKey(to));
      return netTransport.connect(to, events);
    },
  };
  const worker = await startWorkerInTest(webService(endpoints), { transport });
  return {
    worker,
    attempts,
    exclude(excluded) {
      const keys = excluded.map(endpointKey);
      worker.apply({ kind: 'health', listeners: [worker.listener.key], excluded: keys, failing: keys, draining: [] });
    },
    [Symbol.dispose]: () => worker[Symbol.dispose](),
  };
}

test('refuses a client after four different endpoints have refused', async () => {
  using scenario = await serve(await deadEndpoints(1_000));
  const { worker, attempts } = scenario;
  for (let client = 1; client <= 20; client += 1) {
    assert.deepEqual(await connectAndAwaitEnd(worker), RESET);
    assert.deepEqual([attempts.length, new Set(attempts.slice(-4)).size], [4 * client, 4]);
  }
  assert.deepEqual(worker.outcomes(), { 'connect-failed': 20 });
});

test('tries all healthy endpoints and then only one of the excluded endpoints', async () => {
  const endpoints = await deadEndpoints(10);
  using scenario = await serve(endpoints);
  const { worker, attempts, exclude } = scenario;
  exclude(endpoints.slice(2));
  assert.deepEqual(await connectAndAwaitEnd(worker), RESET);
  const healthy = endpoints.slice(0, 2).map(endpointKey);
  assert.deepEqual([attempts.length, new Set(attempts.slice(0, 2))], [3, new Set(healthy)]);
});

test('connects a client to an excluded endpoint if all healthy endpoints refuse', async () => {
  await using backend = await echoServer();
  using scenario = await serve([...(await deadEndpoints(3)), endpointOf(backend)]);
  const { worker, attempts, exclude } = scenario;
  exclude([endpointOf(backend)]);
  await using client = await connectClient(worker);
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
  assert.equal(attempts.length, 4);
});
