// Tests a proxy process that runs out of descriptors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { spawnProxy } from '../fixtures/spawned-proxy.ts';

const LIMIT = 200;

test('at its descriptor limit refuses new connections, keeps open ones, does not spin, and recovers', async (t) => {
  await using backend = await echoServer();
  using proxy = await spawnProxy(webService([endpointOf(backend)]), {
    command: ['sh', '-c', 'ulimit -n "$0" && exec "$@"', String(LIMIT)],
  });
  const { address } = proxy;
  const clients: TestClient[] = [];
  let refused = 0;
  for (let count = 0; count < LIMIT; count += 1) {
    try {
      const client = await connectClient({ host: address, port: PORT });
      await echo(client);
      clients.push(client);
    } catch {
      refused += 1;
    }
  }
  assert.ok(refused > 0 && clients.length > 20, `${clients.length} admitted, ${refused} refused`);
  const full = await proxy.ask();
  assert.equal(full.view.services[0]?.outcomes['no-descriptors'], refused);
  assert.equal(full.view.connections, clients.length);
  await eventually(async () => assert.deepEqual((await proxy.ask()).usage.web?.refused, { 'no-descriptors': refused }));
  for (const client of clients) await echo(client);
  await eventually(() => assert.match(proxy.logged, /"limit":200,.*descriptors are running out/));
  const { cpu } = await proxy.ask();
  const spentMs = (cpu.user + cpu.system - full.cpu.user - full.cpu.system) / 1_000;
  t.diagnostic(`${clients.length} admitted, ${refused} refused; ${spentMs} ms of CPU meanwhile`);

  for (const client of clients.splice(0, 10)) await client.close();
  await eventually(async () => assert.equal((await proxy.ask()).view.connections, clients.length));
  await using next = await connectClient({ host: address, port: PORT });
  await echo(next);
  await next.close();
  for (const client of clients) await client.close();
  await eventually(async () => assert.equal((await proxy.ask()).view.connections, 0));
  // Every connection of a burst is either served or refused.
  let served = 0;
  await Promise.all(
    Array.from({ length: LIMIT }, async () => {
      try {
        await using client = await connectClient({ host: address, port: PORT });
        await echo(client);
        served += 1;
      } catch {}
    }),
  );
  assert.ok(served > 20);
  const { view } = await proxy.ask();
  assert.equal(view.services[0]?.outcomes.internal, undefined);
  assert.deepEqual(
    view.threads.map(({ ends }) => ends),
    [0, 0],
  );
});

async function echo(client: TestClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}
