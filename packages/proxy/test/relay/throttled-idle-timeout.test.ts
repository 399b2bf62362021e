import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { ACTIVE } from '../../src/metering/counters.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { uidOf } from '../fixtures/tables.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};

test('closes a throttled connection after ten idle timeouts, because its client may be gone', async () => {
  await using backend = await echoServer();
  const registry = new LimiterRegistry(1);
  const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
  registry.configure(rows[0], { ...UNLIMITED, inBitsPerSecond: 8 });
  registry.configure(rows[1], UNLIMITED);
  const service = webService([endpointOf(backend)], { settings: { idleTimeoutMs: 1_000 } });
  using worker = await startWorkerInTest(service, { limits: registry.addWorker(1) });
  worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
  await using client = await connectClient(worker);
  // At 8 bits per second, 2,000 bytes use up the limit for about half an hour.
  await client.send('x'.repeat(2_000));
  await client.take(2_000);
  // An idle timeout of one second has surely passed after two ticks.
  worker.tick(2 * 10);
  assert.equal(worker.row[ACTIVE], 1, 'a throttled connection is not idle');
  worker.tick(2);
  assert.deepEqual(worker.outcomes(), { 'idle-timeout': 1 });
});
