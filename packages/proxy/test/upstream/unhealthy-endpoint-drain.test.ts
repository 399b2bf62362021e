// Tests open connections whose endpoint a health check excludes, in a worker with a manual clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Endpoint, endpointKey, type HealthCheckSettings } from '@weir/model';
import { type ByteCountingServer, connectClient, echoServer, type TestClient } from '@weir/testkit';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const CHECK: HealthCheckSettings = {
  kind: 'tcp',
  intervalMs: 1_000,
  timeoutMs: 500,
  healthyThreshold: 1,
  unhealthyThreshold: 2,
  drainTimeoutMs: 5_000,
};

const checked = (endpoints: readonly Endpoint[], healthCheck = CHECK): TestService =>
  webService(endpoints, { settings: { algorithm: 'round-robin', healthCheck, drainTimeoutMs: 60_000 } });

const RESET = { kind: 'error', code: 'ECONNRESET' };

interface DrainScenario extends AsyncDisposable {
  readonly worker: WorkerInTest;
  readonly endpoints: readonly Endpoint[];
  readonly servers: readonly ByteCountingServer[];
  /** The client `clients[i]` is connected to the endpoint `endpoints[i]`. */
  readonly clients: readonly TestClient[];
  /** Reports the endpoints of these indexes as failing and draining, and all other endpoints as healthy. */
  fail(...indexes: readonly number[]): void;
}

async function twoEndpoints(): Promise<DrainScenario> {
  const servers = [await echoServer(), await echoServer()];
  const endpoints = servers.map(endpointOf);
  const worker = await startWorkerInTest(checked(endpoints));
  const clients = [await clientAt(worker, servers), await clientAt(worker, servers)];
  if (clients[0]?.index === 1) clients.reverse();
  return {
    worker,
    endpoints,
    servers,
    clients: clients.map(({ client }) => client),
    fail(...indexes) {
      const keys = indexes.map((index) => endpointKey(endpoints[index] as Endpoint));
      worker.apply({ kind: 'health', listeners: [worker.listener.key], excluded: keys, failing: keys, draining: keys });
    },
    async [Symbol.asyncDispose]() {
      for (const { client } of clients) await client[Symbol.asyncDispose]();
      worker[Symbol.dispose]();
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
}

async function clientAt(
  worker: WorkerInTest,
  servers: readonly ByteCountingServer[],
): Promise<{ client: TestClient; index: number }> {
  const before = servers.map(({ acceptedConnections }) => acceptedConnections);
  const client = await connectClient(worker);
  await answers(client);
  return {
    client,
    index: servers.findIndex(({ acceptedConnections }, index) => acceptedConnections > (before[index] ?? 0)),
  };
}

async function answers(client: TestClient | undefined): Promise<void> {
  await client?.send('a');
  assert.equal((await client?.take(1))?.toString(), 'a');
}

test('resets connections to a failing endpoint after the drain timeout, and no others', async () => {
  await using scenario = await twoEndpoints();
  const { worker, clients, fail } = scenario;
  fail(0);
  worker.tick(5);
  await answers(clients[0]);
  worker.tick(1);
  assert.deepEqual(await clients[0]?.ended, RESET);
  await answers(clients[1]);
  assert.deepEqual(worker.outcomes(), { drained: 1 });
});

test('keeps connections if the endpoint recovers in time, and starts the timeout again at the next failure', async () => {
  await using scenario = await twoEndpoints();
  const { worker, clients, fail } = scenario;
  fail(0);
  worker.tick(5);
  fail();
  worker.tick(10);
  await answers(clients[0]);
  fail(0);
  worker.tick(5);
  fail(0);
  await answers(clients[0]);
  worker.tick(1);
  assert.deepEqual(await clients[0]?.ended, RESET);
});

test('does not extend the drain when a failing endpoint is removed; a healthy removed endpoint has its own timeout', async () => {
  await using scenario = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scenario;
  fail(0);
  worker.tick(3);
  worker.serve(checked([]));
  worker.tick(3);
  assert.deepEqual(await clients[0]?.ended, RESET);
  await answers(clients[1]);
  worker.serve(checked(endpoints));
  await answers(clients[1]);
});

test('keeps connections if a failing endpoint is removed and returns healthy', async () => {
  await using scenario = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scenario;
  fail(0);
  worker.serve(checked(endpoints.slice(1)));
  fail();
  worker.serve(checked(endpoints));
  worker.tick(20);
  await answers(clients[0]);
});

test('keeps connections if the Service has no drain timeout for failed checks any more', async () => {
  await using scenario = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scenario;
  const { drainTimeoutMs: _, ...check } = CHECK as Extract<HealthCheckSettings, { kind: 'tcp' }>;
  worker.serve(checked(endpoints, check));
  fail(0);
  worker.tick(20);
  await nextTurn();
  await answers(clients[0]);
});

test('gives an endpoint its whole share at once if it is used again only because all fail', async () => {
  await using scenario = await twoEndpoints();
  const { worker, endpoints, servers } = scenario;
  const [first = '', second = ''] = endpoints.map(endpointKey);
  const command = { kind: 'health', listeners: [worker.listener.key], draining: [] } as const;
  worker.apply({ ...command, excluded: [first], failing: [first] });
  worker.apply({ ...command, excluded: [], failing: [first, second] });
  const before = servers.map(({ acceptedConnections }) => acceptedConnections);
  for (let count = 0; count < 4; count += 1) {
    await using client = await connectClient(worker);
    await answers(client);
  }
  assert.deepEqual(
    servers.map(({ acceptedConnections }, index) => acceptedConnections - (before[index] ?? 0)),
    [2, 2],
  );
});
