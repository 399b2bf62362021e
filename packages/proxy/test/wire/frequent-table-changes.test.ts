// Tests table changes at a high rate.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { FAILING_WORKER, failWorkers } from '../fixtures/failing-worker.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';

const DURATION_MS = 3_000;
const CHANGES_PER_MS = 1;
/**
 * The maximum number of changes in one iteration of the event loop, which the test shares with the proxy. If the test
 * lags behind its rate, it catches up over several iterations.
 */
const MAX_CHANGES_PER_STEP = 20;

test('a thousand changes a second of one Service affect no other Service, and the last one wins', async (t) => {
  await using fleet = await startFleet();
  await using steady = await echoServer();
  await using old = await echoServer();
  await using last = await echoServer();
  await fleet.serve(webService([endpointOf(steady)]));
  const proxy = await fleet.proxy({ workers: 2 });
  await proxy.ready;
  // Kept open until the end of the test, because the counts below contain only connections that have ended.
  await using lasting = await connectClient({ host: fleet.addressOf(), port: PORT });
  const stop = performance.now() + DURATION_MS;
  const load = (async () => {
    let completed = 0;
    while (performance.now() < stop) {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
      for (const each of [client, lasting]) {
        await each.send('echo');
        assert.equal(String(await each.take(4)), 'echo');
      }
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      completed += 1;
    }
    return completed;
  })();
  let changes = 0;
  const started = performance.now();
  while (performance.now() < stop) {
    const due = Math.min((performance.now() - started) * CHANGES_PER_MS, changes + MAX_CHANGES_PER_STEP);
    for (; changes < due; changes += 1) {
      const endpoints = [[endpointOf(old)], [], [endpointOf(old), endpointOf(last)]][changes % 3] ?? [];
      await fleet.serve(
        webService([endpointOf(steady)]),
        webService(endpoints, { name: 'storm', port: 9_000 + (changes % 2) }),
      );
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await fleet.serve(webService([endpointOf(steady)]), webService([endpointOf(last)], { name: 'storm', port: 9_002 }));
  const completed = await load;
  t.diagnostic(`${changes} changes in ${DURATION_MS} ms, ${completed} connections`);
  assert.ok(changes > DURATION_MS * CHANGES_PER_MS * 0.2, `only ${changes} changes`);
  // The proxy counts a connection a moment after its client has received the FIN.
  await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed }));
  const wanted = await fleet.store.table.meta();
  await eventually(() => assert.equal(proxy.view().applied?.id, wanted?.id));
  await eventually(() => {
    const open = proxy
      .view()
      .listeners.filter(({ listening }) => listening)
      .map(({ id }) => Number(id.split('/').at(-1)));
    assert.deepEqual(open.toSorted(), [PORT, 9_002]);
  });
  await using client = await connectClient({ host: fleet.addressOf(), port: 9_002 });
  await client.send('end');
  await client.take(3);
  assert.equal(last.received, 3);
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: 9_000 }), { code: 'ECONNREFUSED' });
});

test('a table counts as applied when the slowest worker has applied it', async () => {
  const node = randomUUID();
  await using fleet = await startFleet({ nodes: [node] });
  await using backend = await echoServer();
  await fleet.serve(webService([]));
  const proxy = await fleet.proxy({ node, workers: 2, workerEntry: FAILING_WORKER });
  await proxy.ready;
  failWorkers(node, 'slow', 1);
  for (let round = 0; round < 500; round += 1) {
    await fleet.serve(webService([]), webService([], { name: `round-${round % 7}`, port: 9_000 }));
  }
  await fleet.serve(webService([endpointOf(backend)]));
  const wanted = await fleet.store.table.meta();
  await eventually(() => assert.equal(proxy.view().applied?.id, wanted?.id));
  // Connects often enough to reach both workers. Each of them must have applied the last table.
  for (let count = 0; count < 20; count += 1) {
    await using client = await eventually(() => connectClient({ host: fleet.addressOf(node), port: PORT }));
    await client.send('x');
    await client.take(1);
  }
  assert.deepEqual(
    proxy.view().threads.map(({ ends }) => ends),
    [0, 0],
  );
});
