// Makes one of two workers fail in each possible way. The connections of the other worker must continue.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, patternBytes, type TestClient } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { FAILING_WORKER, type Failure, failWorkers } from '../fixtures/failing-worker.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';

const CLIENTS = 24;
const FIRST = 20_000;
const AFTER = 60_000;

for (const failure of ['throw', 'exit', 'hang', 'heap'] as const satisfies Failure[]) {
  test(`a worker that fails by ${failure} ends its own connections and no others`, async () => {
    const node = randomUUID();
    await using fleet = await startFleet({ nodes: [node] });
    await using backend = await echoServer();
    await fleet.serve(webService([endpointOf(backend)]));
    const proxy = await fleet.proxy({ node, workers: 2, workerEntry: FAILING_WORKER, workerHeapMb: 128 });
    await proxy.ready;
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, () =>
        connectClient({ host: fleet.addressOf(node), port: PORT, expectPattern: 3 }),
      ),
    );
    await Promise.all(clients.map((client) => stream(client, FIRST)));
    const ended = new Set<TestClient>();
    for (const client of clients) void client.ended.then(() => ended.add(client));
    const doomed = proxy.view().threads.map(({ active }) => active);
    assert.equal(
      doomed.reduce((sum, active) => sum + active, 0),
      CLIENTS,
    );

    failWorkers(node, failure, 1);
    await eventually(() => assert.deepEqual(endsOf(proxy).toSorted(), [0, 1]));
    const victim = endsOf(proxy).indexOf(1);
    await eventually(() => assert.equal(ended.size, doomed[victim]));
    await eventually(() => assert.equal(proxy.view().workers, 2));
    const survivors = clients.filter((client) => !ended.has(client));
    await Promise.all(survivors.map((client) => stream(client, AFTER)));
    for (const client of survivors) {
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
    }

    await eventually(() => assert.equal(proxy.view().connections, 0));
    const bytes = CLIENTS * FIRST + survivors.length * AFTER;
    assert.deepEqual(proxy.view().services[0]?.counters, {
      receivedBytes: bytes,
      sentBytes: bytes,
      connections: CLIENTS,
      requests: 0,
    });
    assert.deepEqual(outcomesFor(proxy), endings({ internal: doomed[victim], completed: survivors.length }));
    assert.equal(
      proxy.view().threads.reduce((sum, { connections }) => sum + connections, 0),
      CLIENTS,
    );
    assert.equal(ended.size, CLIENTS);
  });
}

/** Sends the next `bytes` bytes of the pattern, and waits until all bytes sent so far have been echoed. */
async function stream(client: TestClient, bytes: number): Promise<void> {
  await client.send(patternBytes({ seed: 3, offset: client.sent, length: bytes }));
  await client.waitForBytes(client.sent);
}

function endsOf(proxy: RunningProxy): number[] {
  return proxy.view().threads.map(({ ends }) => ends);
}

function endings(counts: Record<string, number | undefined>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter((entry): entry is [string, number] => (entry[1] ?? 0) > 0));
}
