import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { FAILING_WORKER, type Failure, failWorkers } from '../fixtures/failing-worker.ts';
import { startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';

for (const failure of ['throw', 'hang'] as const satisfies Failure[]) {
  test(`workers that ${failure} are replaced, and their counts are kept`, async () => {
    const node = randomUUID();
    await using fleet = await startFleet({ nodes: [node] });
    await using backend = await echoServer();
    await fleet.serve(webService([endpointOf(backend)]));
    const proxy = await fleet.proxy({ node, workers: 2, workerEntry: FAILING_WORKER });
    await proxy.ready;
    const host = fleet.addressOf(node);
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectClient({ host, port: PORT })));
    await Promise.all(clients.map(echo));
    failWorkers(node, failure);
    for (const client of clients) assert.notEqual((await client.ended).kind, undefined);
    await eventually(async () => {
      await using client = await connectClient({ host, port: PORT });
      await echo(client);
      await client.end();
      await client.ended;
    });
    await eventually(() => assert.equal(proxy.view().workers, 2));
    await waitForListenerReport(proxy, { bound: true, listening: true, error: null });
    await eventually(() => assert.equal(proxy.view().connections, 0));
    const [service] = proxy.view().services;
    const { connections = 0, receivedBytes = 0 } = service?.counters ?? {};
    assert.ok(
      connections >= 21 && receivedBytes === connections * 4,
      `${connections} connections, ${receivedBytes} bytes`,
    );
    assert.equal(outcomesFor(proxy)?.internal, 20);
    await proxy.close({ drainMs: 0 });
    assert.deepEqual((await fleet.usage()).web, { receivedBytes, sentBytes: receivedBytes, connections, requests: 0 });
  });
}

test('a table is applied only when all workers have it, and a new worker catches up', async () => {
  const node = randomUUID();
  await using fleet = await startFleet({ nodes: [node] });
  await using backend = await echoServer();
  const proxy = await fleet.proxy({ node, workers: 1, workerEntry: FAILING_WORKER });
  assert.equal(proxy.view().applied, null);
  await fleet.serve(webService([]));
  await proxy.ready;
  await fleet.serve(webService([endpointOf(backend)]), webService([], { name: 'other', port: 9_090 }));
  const published = await fleet.store.table.meta();
  await eventually(() => assert.equal(proxy.view().applied?.id, published?.id));
  failWorkers(node, 'throw');
  await eventually(() => assert.equal(proxy.view().workers, 0));
  await eventually(async () => {
    await using client = await connectClient({ host: fleet.addressOf(node), port: PORT });
    await echo(client);
  });
  assert.equal(proxy.view().applied?.id, published?.id);
});

async function echo(client: TestClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}
