// Counts the clients of a tenant in one worker, with real sockets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantClients } from '@weir/model';
import { connectClient, discardServer, echoServer, eventually, httpBackend } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { clientNameFor, TopClientsCounter } from '../../src/metering/top-clients-counter.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { udpClient, udpEcho } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const COUNTING = { countsClients: true, wallClock: () => 600_000 };

function clientsOf(worker: WorkerInTest, tenant = 'shop'): TenantClients | undefined {
  worker.apply({ kind: 'report-clients', tenant, request: 1 });
  const answer = worker.answers.findLast((message) => message.kind === 'clients');
  return answer?.kind === 'clients' ? answer.clients : undefined;
}

const closed = (worker: WorkerInTest): Promise<void> => eventually(() => assert.equal(worker.row[ACTIVE], 0));

test('counts the connections and all bytes of each TCP client', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), COUNTING);
  for (const [localAddress, bytes] of [
    ['127.0.0.1', 10],
    ['127.0.0.2', 100_000],
    ['127.0.0.2', 1],
  ] as const) {
    await using client = await connectClient({ ...worker, localAddress });
    await client.send('x'.repeat(bytes));
    await client.take(bytes);
    await client.end();
    await client.ended;
  }
  await closed(worker);
  assert.deepEqual(clientsOf(worker), {
    since: 300_000,
    bytes: {
      total: (worker.row[RECEIVED] ?? 0) + (worker.row[SENT] ?? 0),
      unlistedAtMost: 0,
      clients: [
        { client: '127.0.0.2', estimate: 200_002, error: 0 },
        { client: '127.0.0.1', estimate: 20, error: 0 },
      ],
    },
    connections: {
      total: 3,
      unlistedAtMost: 0,
      clients: [
        { client: '127.0.0.2', estimate: 2, error: 0 },
        { client: '127.0.0.1', estimate: 1, error: 0 },
      ],
    },
  });
  assert.deepEqual(clientsOf(worker, 'other')?.bytes.clients, []);
});

test('counts an open connection each time it has relayed 1 MiB', async () => {
  await using backend = await discardServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]), COUNTING);
  await using client = await connectClient(worker);
  await client.send('x'.repeat(2_500_000));
  await eventually(() => {
    const [first] = clientsOf(worker)?.bytes.clients ?? [];
    assert.ok((first?.estimate ?? 0) > 1_400_000, `${first?.estimate} bytes`);
  });
});

test('counts HTTP requests of both versions and UDP flows', async () => {
  await using backend = await httpBackend({ handler: (_request, response) => response.end('x') });
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], { settings: { httpPorts: [PORT] } }),
    COUNTING,
  );
  await using client = await connectClient(worker);
  await client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await client.ended;
  await client.end();
  await closed(worker);
  const bytes = (worker.row[RECEIVED] ?? 0) + (worker.row[SENT] ?? 0);
  assert.deepEqual(clientsOf(worker)?.bytes.clients, [{ client: '127.0.0.1', estimate: bytes, error: 0 }]);
  await using echo = await udpEcho('');
  const voice = { name: 'voice', port: PORT, protocol: 'UDP', endpoints: [echo.endpoint] } as const;
  using udp = await startWorkerInTest(voice, COUNTING);
  await using sender = await udpClient(udp);
  await sender.ask('hello');
  udp.apply({ kind: 'terminate', outcome: 'drained' });
  await closed(udp);
  assert.deepEqual(clientsOf(udp)?.bytes.clients, [{ client: '127.0.0.1', estimate: 10, error: 0 }]);
});

test('counts nothing by default', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]));
  await using client = await connectClient(worker);
  await client.end();
  await client.ended;
  assert.equal(clientsOf(worker), undefined);
});

test('forgets the clients of a window after one further window of 5 minutes', () => {
  let now = 600_000;
  const counter = new TopClientsCounter(() => now);
  const entry = { tenant: 'shop', uid: 'u' } as Parameters<TopClientsCounter['add']>[1];
  const total = (): number => counter.resultFor('shop').bytes.total;
  counter.add('bytes', entry, { client: 'a', amount: 1 });
  now = 1_199_999;
  counter.add('bytes', entry, { client: 'a', amount: 2 });
  assert.equal(total(), 3);
  now = 1_200_000;
  assert.equal(total(), 2);
  now = 3_600_000;
  assert.equal(total(), 0);
});

test('counts at most 256 tenants in a window', () => {
  const counter = new TopClientsCounter(() => 0);
  for (let index = 0; index < 300; index += 1)
    counter.add('bytes', { tenant: `t${index}` } as Parameters<TopClientsCounter['add']>[1], {
      client: 'a',
      amount: 1,
    });
  assert.deepEqual([counter.resultFor('t255').bytes.total, counter.resultFor('t256').bytes.total], [1, 0]);
});

test('names an IPv6 client by its /64 network', () => {
  assert.equal(clientNameFor('2001:db8::1'), '2001:db8:0:0::/64');
  assert.equal(clientNameFor('::ffff:192.0.2.1'), '192.0.2.1');
});
