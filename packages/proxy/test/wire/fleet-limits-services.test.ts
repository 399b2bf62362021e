// Tests that the limits of a Service hold over two proxies together, also below the limits of its tenant. The lower bounds are wide,
// because a busy machine makes the clients slower; limits/fleet-rates.test.ts has the precise bounds, with a manual clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, type Endpoint, type ServiceLimits } from '@weir/model';
import { connectClient, discardServer, echoServer, eventually, patternServer, type TestClient } from '@weir/testkit';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { echoing, load } from '../fixtures/fleet-clients.ts';
import { httpEndpoint } from '../fixtures/http-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const NODES = ['a', 'b'] as const;
/** How much wider the limits of the tenant are. */
const TENANT_FACTOR = 4;
const BYTES_PER_SECOND = 2_000_000;
/** What the clients of each node transfer. */
const TRANSFER = 1_500_000;
/** What may pass without a wait: the bytes of 50 ms, and one more read of each stream. */
const UNPACED = BYTES_PER_SECOND * 0.05 + NODES.length * 102_400;
/** Without shares, each proxy would use a tenth of the limit, and the transfer would take longer than this. */
const MAX_TRANSFER_SECONDS = (0.8 * TRANSFER) / (BYTES_PER_SECOND / 10);
const RATE = 100;
const LOAD_MS = 3_000;

test('connections: two proxies together open as many as the Service may have, and other Services open more', async () => {
  await using stack = new AsyncDisposableStack();
  const backend = endpointOf(stack.use(await echoServer()));
  const fleet = await twoProxies(stack, backend, { connections: 4 });
  const open: TestClient[] = [];
  const add = async (node: string): Promise<boolean> => {
    const client = await echoing(fleet, node);
    if (client !== undefined) open.push(stack.use(client));
    return client !== undefined;
  };
  // A proxy that has just started may admit a connection more: see "a proxy starts" in docs/fleet-limits.md. At last, all attempts of a
  // round are refused, because the Service has all of its connections.
  await eventually(async () => {
    const before = open.length;
    while (open.length > 4) await open.pop()?.close();
    for (const node of NODES) while (await add(node));
    assert.deepEqual([before, open.length], [4, 4]);
  });
  for (let count = 0; count < 5; count += 1) stack.use((await echoing(fleet, 'a', PORT + 1)) ?? assert.fail());
});

for (const nodes of [['a'], ['a', 'b']]) {
  test(`new connections per second: the Service gets its rate, with clients of ${nodes.join(' and ')}`, async () => {
    await using stack = new AsyncDisposableStack();
    const backend = endpointOf(stack.use(await echoServer()));
    const fleet = await twoProxies(stack, backend, { newConnectionsPerSecond: RATE });
    await load(fleet, nodes, 2_000);
    const { admitted, seconds } = await load(fleet, nodes, LOAD_MS);
    assert.ok(admitted >= 0.8 * RATE * (LOAD_MS / 1_000), `${admitted} in ${seconds} s`);
    assert.ok(admitted <= RATE * (seconds + 1), `${admitted} in ${seconds} s`);
  });

  test(`requests per second: the Service gets its rate, with clients of ${nodes.join(' and ')}`, async () => {
    await using stack = new AsyncDisposableStack();
    const { endpoint } = stack.use(await httpEndpoint('web'));
    const fleet = await twoProxies(stack, endpoint, { requestsPerSecond: RATE });
    await requestFor(fleet, nodes, 2);
    const { answered, seconds } = await requestFor(fleet, nodes, LOAD_MS / 1_000);
    // A client on a busy machine may send fewer requests than the rate allows. One proxy without the share would answer a tenth.
    assert.ok(answered >= 0.5 * RATE * (LOAD_MS / 1_000), `${answered} in ${seconds} s`);
    assert.ok(answered <= 1.1 * RATE * (seconds + 1), `${answered} in ${seconds} s`);
  });
}

test('bandwidth to clients: two proxies together relay as much as the Service may', async () => {
  await using stack = new AsyncDisposableStack();
  const source = endpointOf(stack.use(await patternServer({ bytes: TRANSFER, seed: 7 })));
  const fleet = await twoProxies(stack, source, { outBitsPerSecond: 8 * BYTES_PER_SECOND });
  await assertTransferTime(async (host) => {
    await using client = await connectClient({ host, port: PORT, expectPattern: 7, timeoutMs: 60_000 });
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.equal(client.received, TRANSFER);
  }, fleet);
});

test('bandwidth from clients: two proxies together relay as much as the Service may', async () => {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await discardServer());
  const fleet = await twoProxies(stack, endpointOf(sink), { inBitsPerSecond: 8 * BYTES_PER_SECOND });
  await assertTransferTime(async (host) => {
    await using client = await connectClient({ host, port: PORT, timeoutMs: 60_000 });
    await client.sendPattern({ bytes: TRANSFER });
    await client.end();
    await client.ended;
  }, fleet);
  assert.equal(sink.received, NODES.length * TRANSFER);
});

async function assertTransferTime(transfer: (host: string) => Promise<void>, fleet: Fleet): Promise<void> {
  const startedAt = performance.now();
  await Promise.all(NODES.map((node) => transfer(fleet.addressOf(node))));
  const seconds = (performance.now() - startedAt) / 1_000;
  assert.ok(seconds >= (NODES.length * TRANSFER - UNPACED) / BYTES_PER_SECOND, `${seconds} s`);
  assert.ok(seconds <= MAX_TRANSFER_SECONDS, `${seconds} s`);
}

/** Sends requests at each node, one after the other, for at least `minSeconds`. */
async function requestFor(
  fleet: Fleet,
  nodes: readonly string[],
  minSeconds: number,
): Promise<{ readonly answered: number; readonly seconds: number }> {
  const startedAt = performance.now();
  const elapsedSeconds = (): number => (performance.now() - startedAt) / 1_000;
  let answered = 0;
  await Promise.all(
    nodes.map(async (node) => {
      while (elapsedSeconds() < minSeconds) {
        const response = await fetch(`http://${fleet.addressOf(node)}:${PORT}/`);
        await response.arrayBuffer();
        if (response.ok) answered += 1;
        else assert.equal(response.status, 429);
      }
    }),
  );
  return { answered, seconds: elapsedSeconds() };
}

/** Starts proxies of the limited Service, and of an unlimited Service of the same tenant at the next port. */
async function twoProxies(
  stack: AsyncDisposableStack,
  endpoint: Endpoint,
  limits: Partial<Record<keyof ServiceLimits, number>>,
): Promise<Fleet> {
  const fleet = stack.use(await startFleet({ nodes: NODES }));
  const wider = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, TENANT_FACTOR * limit]));
  fleet.limit('shop', wider);
  const httpPorts = 'requestsPerSecond' in limits ? [PORT] : [];
  await fleet.serve(
    webService([endpoint], { settings: { httpPorts, limits: { ...DEFAULT_SERVICE_SETTINGS.limits, ...limits } } }),
    webService([endpoint], { name: 'api', port: PORT + 1 }),
  );
  for (const node of NODES) await (await fleet.proxy({ node })).ready;
  return fleet;
}
