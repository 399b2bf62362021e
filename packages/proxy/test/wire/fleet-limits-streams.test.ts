// Tests that limits of bandwidth and HTTP requests hold over two proxies together. A busy machine can only make the clients slower.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, eventually, patternServer, type TestClient } from '@weir/testkit';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { httpEndpoint } from '../fixtures/http-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';

const NODES = ['a', 'b'] as const;
const BYTES_PER_SECOND = 2_000_000;
const TRANSFER = 3_000_000;
/** What may pass without a wait: the bytes of 50 ms, and one more read of each stream. */
const UNPACED = BYTES_PER_SECOND * 0.05 + NODES.length * 102_400;
const REQUESTS_PER_SECOND = 100;
const LOAD_SECONDS = 2;
/** Streams at each node. */
const STREAMS = { a: 1, b: 9 } as const;

test('clients of two proxies together receive no more than the bandwidth of their tenant', async () => {
  await using stack = new AsyncDisposableStack();
  const source = stack.use(await patternServer({ bytes: TRANSFER / 2, seed: 7 }));
  const fleet = await twoProxies(stack, webService([endpointOf(source)]), { outBitsPerSecond: 8 * BYTES_PER_SECOND });
  const startedAt = performance.now();
  await Promise.all(
    NODES.map(async (node) => {
      const host = fleet.addressOf(node);
      await using client = await connectClient({ host, port: PORT, expectPattern: 7, timeoutMs: 60_000 });
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.received, TRANSFER / 2);
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  assert.ok(seconds >= (TRANSFER - UNPACED) / BYTES_PER_SECOND, `${seconds} s`);
});

test('a bandwidth is divided by the number of streams, and not by the number of proxies', async () => {
  await using stack = new AsyncDisposableStack();
  const source = stack.use(await patternServer({ bytes: 100 * TRANSFER, seed: 7 }));
  const fleet = await twoProxies(stack, webService([endpointOf(source)]), { outBitsPerSecond: 8 * BYTES_PER_SECOND });
  const clients: Record<keyof typeof STREAMS, TestClient[]> = { a: [], b: [] };
  for (const node of NODES)
    for (let stream = 0; stream < STREAMS[node]; stream += 1)
      clients[node].push(
        stack.use(
          await connectClient({ host: fleet.addressOf(node), port: PORT, expectPattern: 7, timeoutMs: 60_000 }),
        ),
      );
  const receivedBy = (node: keyof typeof STREAMS): number =>
    clients[node].reduce((sum, { received }) => sum + received, 0);
  const total = (): number => receivedBy('a') + receivedBy('b');
  const patient = { timeoutMs: 60_000, intervalMs: 20 };
  await eventually(() => assert.ok(total() >= 3 * BYTES_PER_SECOND), patient);
  const [a, b] = [receivedBy('a'), receivedBy('b')];
  await eventually(() => assert.ok(total() >= a + b + 4 * BYTES_PER_SECOND), patient);
  const perStream = [(receivedBy('a') - a) / STREAMS.a, (receivedBy('b') - b) / STREAMS.b] as const;
  // A busy machine shifts the shares for a moment. Divided by the number of proxies, the ratio would be 9.
  const ratio = perStream[0] / perStream[1];
  assert.ok(ratio > 1 / 2 && ratio < 2, `${perStream.join(' and ')} bytes`);
});

test('clients of two proxies together get answers to no more requests than the rate of their tenant allows', async () => {
  await using stack = new AsyncDisposableStack();
  const endpoint = stack.use(await httpEndpoint('web'));
  const service = webService([endpoint.endpoint], { settings: { httpPorts: [PORT] } });
  const fleet = await twoProxies(stack, service, { requestsPerSecond: REQUESTS_PER_SECOND });
  const startedAt = performance.now();
  const elapsedSeconds = (): number => (performance.now() - startedAt) / 1_000;
  const answered = await Promise.all(
    NODES.map(async (node) => {
      let count = 0;
      while (elapsedSeconds() < LOAD_SECONDS) {
        const response = await fetch(`http://${fleet.addressOf(node)}:${PORT}/`);
        await response.arrayBuffer();
        if (response.ok) count += 1;
        else assert.equal(response.status, 429);
      }
      return count;
    }),
  );
  assert.ok(answered.every((count) => count > 0));
  const sum = answered.reduce((all, each) => all + each, 0);
  // Any second has at most 110 % of the rate. Two limits would admit a burst and the rate at each proxy.
  assert.ok(sum <= 1.1 * REQUESTS_PER_SECOND * (1 + elapsedSeconds()), `${sum} in ${elapsedSeconds()} s`);
});

async function twoProxies(
  stack: AsyncDisposableStack,
  service: TestService,
  limits: Parameters<Fleet['limit']>[1],
): Promise<Fleet> {
  const fleet = stack.use(await startFleet({ nodes: NODES }));
  fleet.limit('shop', limits);
  await fleet.serve(service);
  for (const node of NODES) await (await fleet.proxy({ node })).ready;
  return fleet;
}
