// What becomes of open connections when a health check takes their endpoint out, in a worker whose clock the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Endpoint, endpointKey, type HealthCheck } from '@weir/model';
import { type ByteCountingServer, connectClient, echoServer, type TestClient } from '@weir/testkit';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const CHECK: HealthCheck = {
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
  /** Open to the endpoint of the same place. */
  readonly clients: readonly TestClient[];
  /** The endpoints of these places fail, and connections to those of the others are let be. */
  fail(...places: readonly number[]): void;
}

async function twoEndpoints(): Promise<DrainScenario> {
  const servers = [await echoServer(), await echoServer()];
  const endpoints = servers.map(endpointOf);
  const worker = await startWorkerInTest(checked(endpoints));
  const clients = [await clientAt(worker, servers), await clientAt(worker, servers)];
  if (clients[0]?.place === 1) clients.reverse();
  return {
    worker,
    endpoints,
    servers,
    clients: clients.map(({ client }) => client),
    fail(...places) {
      const keys = places.map((place) => endpointKey(endpoints[place] as Endpoint));
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
): Promise<{ client: TestClient; place: number }> {
  const before = servers.map(({ acceptedConnections }) => acceptedConnections);
  const client = await connectClient(worker);
  await answers(client);
  return {
    client,
    place: servers.findIndex(({ acceptedConnections }, index) => acceptedConnections > (before[index] ?? 0)),
  };
}

async function answers(client: TestClient | undefined): Promise<void> {
  await client?.send('a');
  assert.equal((await client?.take(1))?.toString(), 'a');
}

test('they go on for the time of the check, and are reset then; those to others are not', async () => {
  await using scene = await twoEndpoints();
  const { worker, clients, fail } = scene;
  fail(0);
  worker.tick(5);
  await answers(clients[0]);
  worker.tick(1);
  assert.deepEqual(await clients[0]?.ended, RESET);
  await answers(clients[1]);
  assert.deepEqual(worker.outcomes(), { drained: 1 });
});

test('they go on when it works again in time, and have their whole time when it fails once more', async () => {
  await using scene = await twoEndpoints();
  const { worker, clients, fail } = scene;
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

test('they have no more time when it leaves meanwhile, and those of one that only leaves have its own', async () => {
  await using scene = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scene;
  fail(0);
  worker.tick(3);
  worker.serve(checked([]));
  worker.tick(3);
  assert.deepEqual(await clients[0]?.ended, RESET);
  await answers(clients[1]);
  worker.serve(checked(endpoints));
  await answers(clients[1]);
});

test('they go on when it leaves meanwhile, and works when it returns', async () => {
  await using scene = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scene;
  fail(0);
  worker.serve(checked(endpoints.slice(1)));
  fail();
  worker.serve(checked(endpoints));
  worker.tick(20);
  await answers(clients[0]);
});

test('they go on where the Service says no longer how long', async () => {
  await using scene = await twoEndpoints();
  const { worker, clients, endpoints, fail } = scene;
  const { drainTimeoutMs: _, ...check } = CHECK as Extract<HealthCheck, { kind: 'tcp' }>;
  worker.serve(checked(endpoints, check));
  fail(0);
  worker.tick(20);
  await nextTurn();
  await answers(clients[0]);
});

test('one that is chosen again only because all fail has its whole share at once', async () => {
  await using scene = await twoEndpoints();
  const { worker, endpoints, servers } = scene;
  const [first = '', second = ''] = endpoints.map(endpointKey);
  const order = { kind: 'health', listeners: [worker.listener.key], draining: [] } as const;
  worker.apply({ ...order, excluded: [first], failing: [first] });
  worker.apply({ ...order, excluded: [], failing: [first, second] });
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
