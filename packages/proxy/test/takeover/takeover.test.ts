// Tests two proxies of one node, started by an upgrade or by mistake.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

const ADMIN = { admin: { host: '127.0.0.1', port: 0 } };

test('a successor takes over as soon as it has a table; the predecessor keeps its connections and waits', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]), webService([], { name: 'held', port: 9_090 }));
  const first = await fleet.proxy(ADMIN);
  await first.ready;
  await using old = await connectClient({ host: fleet.addressOf(), port: PORT });
  await echo(old);
  const second = await fleet.proxy(ADMIN);
  await handedOver(first);
  await waitForListenerReport(second, { bound: true, listening: true, error: null });
  assert.equal(second.view().conflict, null);
  await eventually(async () => assert.equal(await readiness(second), 200));
  // Only the proxy that serves the node has the admin port.
  assert.equal(first.adminAddress, undefined);
  await using next = await connectClient({ host: fleet.addressOf(), port: PORT });
  await echo(next);
  await echo(old);
  assert.equal(connectionsOf(second, 'web'), 1);
  assert.deepEqual(first.view().listeners, []);
  await eventually(async () =>
    assert.deepEqual(
      (await fleet.heartbeats()).map(({ draining, connections }) => ({ draining, connections })),
      [
        { draining: true, connections: 1 },
        { draining: false, connections: 1 },
      ],
    ),
  );
  await old.end();
  await first.close();
});

test('a predecessor serves again when its successor ends, and hands over to the next one', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const first = await startServing(fleet, webService([endpointOf(backend)]));
  for (let round = 0; round < 3; round += 1) {
    const next = await fleet.proxy();
    await handedOver(first);
    await waitForListenerReport(next, { listening: true });
    await next.close();
    await waitForListenerReport(first, { bound: true, listening: true, error: null });
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
    await echo(client);
    await client.end();
    await client.ended;
  }
});

test('table changes during and after a takeover reach the proxy that serves', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const first = await startServing(fleet, webService([endpointOf(backend)]));
  const second = await fleet.proxy();
  for (let port = 10_000; port < 10_040; port += 1) {
    await fleet.serve(webService([endpointOf(backend)]), webService([endpointOf(backend)], { name: 'moving', port }));
  }
  await handedOver(first);
  await using client = await eventually(() => connectClient({ host: fleet.addressOf(), port: 10_039 }));
  await echo(client);
  assert.equal(connectionsOf(second, 'moving'), 1);
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: 10_038 }), { code: 'ECONNREFUSED' });
});

test('a proxy of the same node name with another store waits instead of taking over', async () => {
  await using fleet = await startFleet();
  await using otherFleet = await startFleet({ addresses: { a: fleet.addressOf() } });
  await using backend = await echoServer();
  const first = await startServing(fleet, webService([endpointOf(backend)]));
  await otherFleet.serve(webService([endpointOf(backend)]));
  const other = await otherFleet.proxy({ fleet: fleet.name });
  await other.ready;
  assert.match(
    String(other.view().conflict),
    /^another proxy serves node a of fleet test-.* has not handed over the node/,
  );
  assert.equal(other.view().listeners[0]?.error, other.view().conflict);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await echo(client);
  await client.end();
  await client.ended;
  assert.equal(first.view().services[0]?.counters.connections, 1);
  await first.close();
  await waitForListenerReport(other, { bound: true, listening: true, error: null });
});

test('a successor that cannot open a listener of the predecessor gives up and reports why', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const first = await startServing(fleet, webService([endpointOf(backend)]));
  const second = await fleet.proxy({
    workerEntry: new URL('../fixtures/worker-without-listeners.ts', import.meta.url),
  });
  await eventually(() =>
    assert.match(String(second.view().conflict), /cannot take over .*: cannot listen on .* in use/),
  );
  await waitForListenerReport(first, { listening: true });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await echo(client);
  assert.equal(first.view().services[0]?.counters.connections, 1);
});

async function handedOver(proxy: RunningProxy): Promise<void> {
  await eventually(() => assert.match(String(proxy.view().conflict), /^another proxy has taken over node a/));
}

function connectionsOf(proxy: RunningProxy, name: string): number | undefined {
  return proxy.view().services.find((service) => service.name === name)?.counters.connections;
}

async function echo(client: TestClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}

async function readiness({ adminAddress }: RunningProxy): Promise<number> {
  return (await fetch(`http://${adminAddress?.host}:${adminAddress?.port}/readyz`)).status;
}
