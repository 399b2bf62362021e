import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { ACTIVE } from '../../src/metering/counters.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { uidOf } from '../fixtures/tables.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = { connections: NONE, newConnectionsPerSecond: NONE, inBitsPerSecond: NONE, outBitsPerSecond: NONE };

test('one whose turn does not come for ten idle timeouts ends: nobody would see that its client has gone', async () => {
  await using backend = await echoServer();
  const book = new LimiterRegistry(1);
  const rows = [book.allocateRow('service'), book.allocateRow('tenant')] as const;
  book.configure(rows[0], { ...UNLIMITED, inBitsPerSecond: 8 });
  book.configure(rows[1], UNLIMITED);
  const service = webService([endpointOf(backend)], { settings: { idleTimeoutMs: 1_000 } });
  using worker = await startWorkerInTest(service, { limits: book.addWorker(1) });
  worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
  await using client = await connectClient(worker);
  // Paid for in half an hour.
  await client.send('x'.repeat(2_000));
  await client.take(2_000);
  // An idle timeout of a second has passed for sure after two ticks.
  worker.tick(2 * 10);
  assert.equal(worker.row[ACTIVE], 1, 'it is held, not idle');
  worker.tick(2);
  assert.deepEqual(worker.outcomes(), { 'idle-timeout': 1 });
});
