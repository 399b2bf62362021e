import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { connectRaw, echoServer, eventually, type RawClient } from '@weir/testkit';
import { FAILING_WORKER, type Failure, fail } from '../fixtures/failing-worker.ts';
import { reportOf, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, outcomesOf, web } from '../fixtures/serving.ts';

for (const failure of ['throw', 'hang'] as const satisfies Failure[]) {
  test(`workers that ${failure} are replaced, and what they had counted stays`, async () => {
    const node = randomUUID();
    await using fleet = await startFleet({ nodes: [node] });
    await using backend = await echoServer();
    await fleet.serve(web([endpointOf(backend)]));
    const proxy = await fleet.proxy({ node, workers: 2, workerEntry: FAILING_WORKER });
    await proxy.ready;
    const host = fleet.addressOf(node);
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectRaw({ host, port: PORT })));
    await Promise.all(clients.map(echo));
    fail(node, failure);
    for (const client of clients) assert.notEqual((await client.ended).kind, undefined);
    await eventually(async () => {
      await using client = await connectRaw({ host, port: PORT });
      await echo(client);
      await client.end();
      await client.ended;
    });
    await eventually(() => assert.equal(proxy.view().workers, 2));
    await reportOf(proxy, { bound: true, listening: true, error: null });
    await eventually(() => assert.equal(proxy.view().connections, 0));
    const [service] = proxy.view().services;
    const { connections = 0, receivedBytes = 0 } = service?.counters ?? {};
    assert.ok(
      connections >= 21 && receivedBytes === connections * 4,
      `${connections} connections, ${receivedBytes} bytes`,
    );
    assert.equal(outcomesOf(proxy)?.internal, 20);
    await proxy.close({ drainMs: 0 });
    assert.deepEqual((await fleet.usage()).web, { receivedBytes, sentBytes: receivedBytes, connections, requests: 0 });
  });
}

test('a table is applied only when all workers have it, and a new worker gets what the others have', async () => {
  const node = randomUUID();
  await using fleet = await startFleet({ nodes: [node] });
  await using backend = await echoServer();
  const proxy = await fleet.proxy({ node, workers: 1, workerEntry: FAILING_WORKER });
  assert.equal(proxy.view().applied, null);
  await fleet.serve(web([]));
  await proxy.ready;
  await fleet.serve(web([endpointOf(backend)]), web([], { name: 'other', port: 9_090 }));
  const published = await fleet.store.table.meta();
  await eventually(() => assert.equal(proxy.view().applied?.id, published?.id));
  fail(node, 'throw');
  await eventually(() => assert.equal(proxy.view().workers, 0));
  await eventually(async () => {
    await using client = await connectRaw({ host: fleet.addressOf(node), port: PORT });
    await echo(client);
  });
  assert.equal(proxy.view().applied?.id, published?.id);
});

async function echo(client: RawClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}
