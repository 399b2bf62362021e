// Tests a host that has no local ports left for connections to an endpoint.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@weir/runtime';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { insideNamespace } from '@weir/tools';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, webService } from '../fixtures/services.ts';

const PORTS = 10;
const OTHER = 9_090;
const namespace = insideNamespace({ sysctls: { 'net/ipv4/ip_local_port_range': '40000 40009' } });

describe('when local ports are used up', namespace, () => {
  test('refuses clients as connect-failed, and names the cause in log and metrics', async () => {
    await using fleet = await startFleet();
    await using backend = await echoServer({ port: 30_000 });
    // Serves the endpoint on two ports, because the clients too have only ten local ports for connections to one port.
    await fleet.serve(
      webService([endpointOf(backend)]),
      webService([endpointOf(backend)], { name: 'other', port: OTHER }),
    );
    const lines: string[] = [];
    const log = createLogger({
      name: 'proxy',
      level: 'warn',
      destination: { write: (line: string) => lines.push(line) },
    });
    const proxy = await fleet.proxy({ log, admin: { host: '127.0.0.1', port: 30_001 } });
    await proxy.ready;
    const clients: TestClient[] = [];
    for (let count = 0; count < PORTS; count += 1) clients.push(await connected(fleet.addressOf(), PORT));
    const late = await connectAndAwaitEnd({ host: fleet.addressOf(), port: OTHER });
    assert.deepEqual(late, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.equal(outcomesFor(proxy, 'other')?.['connect-failed'], 1));
    await eventually(() => {
      const logged = lines.map((line) => JSON.parse(line)).find(({ code }) => code === 'EADDRNOTAVAIL');
      assert.match(
        logged?.advice,
        /^no local port is left: net\.ipv4\.ip_local_port_range limits .*; widen the range, or add endpoints$/,
      );
    });
    const metrics = await (await fetch('http://127.0.0.1:30001/metrics')).text();
    assert.match(metrics, /^weir_connect_local_failures_total\{code="EADDRNOTAVAIL"\} 1$/m);
    // Open connections continue. When one of them ends, its local port is free again.
    await echo(clients[1]);
    await clients[0]?.end();
    await clients[0]?.ended;
    await eventually(async () => {
      await using next = await connected(fleet.addressOf(), OTHER);
      await echo(next);
    });
    await Promise.all(clients.map((client) => client.close()));
  });
});

async function connected(host: string, port: number): Promise<TestClient> {
  const client = await connectClient({ host, port });
  await echo(client);
  return client;
}

async function echo(client: TestClient | undefined): Promise<void> {
  await client?.send('echo');
  await client?.take(4);
}
