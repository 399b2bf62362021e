// Tests bandwidth limits in a complete proxy. Asserts only minimum durations, because a busy machine can take longer.
// The property tests of the limits assert the maximum.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVICE_SETTINGS, type TenantLimits } from '@weir/model';
import {
  type ByteCountingServer,
  connectClient,
  discardServer,
  echoServer,
  eventually,
  patternServer,
} from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, outcomesFor, startServing, webService } from '../fixtures/services.ts';

const RATE = 16_000_000;
const BYTES_PER_SECOND = RATE / 8;
/** The bytes that may pass without a wait: as many as the limit allows in 50 ms. */
const BURST = BYTES_PER_SECOND * 0.05;
/** The size of one more read, which each stream may do before it is paused. */
const SLICE = 102_400;
const TRANSFER = 3_000_000;
const PATIENT = { timeoutMs: 60_000 };

test('slows down uploads to the tenant’s limit over all connections and workers, without loss', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  await serve(fleet, sink, { inBitsPerSecond: RATE });
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
      await client.sendPattern({ bytes: TRANSFER / 3 });
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
    }),
  );
  assertSlow(startedAt, 3);
  assert.equal(sink.received, TRANSFER);
});

test('slows down downloads to the tenant’s limit as well', async () => {
  await using fleet = await startFleet();
  await using source = await patternServer({ bytes: TRANSFER / 2, seed: 7 });
  await serve(fleet, source, { outBitsPerSecond: RATE });
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: 2 }, async () => {
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT, expectPattern: 7, ...PATIENT });
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.received, TRANSFER / 2);
    }),
  );
  assertSlow(startedAt, 2);
});

test('applies the limit of a Service without a tenant limit, and does not slow down other Services', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  await using echo = await echoServer();
  const limits = { ...DEFAULT_SERVICE_SETTINGS.limits, inBitsPerSecond: RATE };
  await startServing(
    fleet,
    webService([endpointOf(sink)], { settings: { limits } }),
    webService([endpointOf(echo)], { name: 'api', port: PORT + 1 }),
  );
  const startedAt = performance.now();
  await using slow = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  const sending = slow.sendPattern({ bytes: TRANSFER });
  await using quick = await connectClient({ host: fleet.addressOf(), port: PORT + 1, ...PATIENT });
  for (let round = 0; round < 20; round += 1) {
    await quick.send('ping');
    await quick.take(4);
  }
  assert.ok(sink.received < TRANSFER, 'the other one was through before');
  await sending;
  await slow.end();
  await slow.ended;
  assertSlow(startedAt, 1);
  assert.equal(sink.received, TRANSFER);
});

test('applies a new limit to an open connection, and stops when the limit is removed', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  await using echo = await echoServer();
  const limitShop = async (limits: TenantLimits): Promise<void> => {
    fleet.limit('shop', limits);
    const games = { name: 'api', namespace: 'games', tenant: 'games', port: PORT + 1 };
    await fleet.serve(webService([endpointOf(sink)]), webService([endpointOf(echo)], games));
  };
  await limitShop({});
  const proxy = await fleet.proxy({ workers: 1 });
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  await using other = await connectClient({ host: fleet.addressOf(), port: PORT + 1, ...PATIENT });
  /** Sends bytes, and returns when the worker has handled them: it has handled later bytes of another tenant. */
  const send = async (bytes: string): Promise<void> => {
    await client.send(bytes);
    for (let round = 0; round < 2; round += 1) {
      await other.send('ping');
      await other.take(4);
    }
  };
  await send('x');
  assert.equal(sink.received, 1);
  const { revision } = proxy.view().applied ?? assert.fail();
  await limitShop({ inBitsPerSecond: 0 });
  await eventually(() => assert.ok((proxy.view().applied?.revision ?? 0) > revision));
  // The worker already waits for bytes of the client, and reads once more. After that, the stream is not read until the limit is removed.
  await send('y');
  assert.equal(sink.received, 2);
  await send('z'.repeat(1_000));
  assert.equal(sink.received, 2);
  await limitShop({});
  await eventually(() => assert.equal(sink.received, 1_002));
});

test('does not count a throttled connection as idle', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  fleet.limit('shop', { inBitsPerSecond: 6_000 });
  const proxy = await startServing(fleet, webService([endpointOf(sink)], { settings: { idleTimeoutMs: 1 } }));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  // At this rate, a first read of 2 KiB uses up the limit for almost three seconds. The idle timeout of 1 ms is rounded
  // up to two seconds.
  await client.sendPattern({ bytes: 2_500 });
  await eventually(() => assert.equal(sink.received, 2_500));
  assert.equal(outcomesFor(proxy)?.['idle-timeout'], undefined);
});

test('closes a connection with a limit of 0 after the idle timeout, because the end of its client would go unnoticed', async () => {
  await using fleet = await startFleet();
  await using sink = await discardServer();
  fleet.limit('shop', { inBitsPerSecond: 0 });
  const proxy = await startServing(fleet, webService([endpointOf(sink)], { settings: { idleTimeoutMs: 1 } }));
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, ...PATIENT });
  await client.send('x'.repeat(4_000));
  await eventually(() => assert.equal(outcomesFor(proxy)?.['idle-timeout'], 1));
});

async function limit(fleet: Fleet, endpoint: ByteCountingServer, limits: TenantLimits): Promise<void> {
  fleet.limit('shop', limits);
  await fleet.serve(webService([endpointOf(endpoint)]));
}

async function serve(fleet: Fleet, endpoint: ByteCountingServer, limits: TenantLimits): Promise<RunningProxy> {
  await limit(fleet, endpoint, limits);
  const proxy = await fleet.proxy({ workers: 2 });
  await proxy.ready;
  return proxy;
}

function assertSlow(startedAt: number, streams: number): void {
  const seconds = (performance.now() - startedAt) / 1_000;
  const minSeconds = (TRANSFER - BURST - streams * SLICE) / BYTES_PER_SECOND;
  assert.ok(seconds >= minSeconds, `${seconds} s of at least ${minSeconds} s`);
}
