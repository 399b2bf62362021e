import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import { SlotRegistry } from '../../../src/metering/slot-registry.ts';
import { DeferredListeners } from '../../../src/supervisor/listeners/listener-scheduling.ts';
import { TableDistributor } from '../../../src/supervisor/table/table-distributor.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const SERVICES = 2_000;
const MAX_CHANGES_PER_PART = 500;

const shared = (name: string, host: string): TestService => ({
  name,
  port: 443,
  shared: true,
  settings: { hosts: [host], tlsPassthrough: true },
  endpoints: [{ address: '10.0.0.1', port: 443 }],
});

test('splits a first table with thousands of hosts below a wildcard, and defers their shared listener until the last part', async () => {
  const sizes: number[] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const distributor: TableDistributor = new TableDistributor({
    node: 'a',
    slots: new SlotRegistry(),
    limits: new LimiterRegistry(1),
    pool: {
      post: (command: WorkerCommand) => void sizes.push(command.kind === 'table' ? command.changes.length : 0),
      addCounterBlock: () => undefined,
      mark: () => 1,
    },
    onRoutesChanged(keys) {
      const due = deferred.due(keys.length === 0 ? [] : distributor.matcher.listeners.keys());
      assert.equal(due.size > 0, !distributor.isPartial, 'the listener is due after the last part, and not before');
      if (!distributor.isPartial) resolve();
    },
    onApplied: () => undefined,
  });
  const deferred = new DeferredListeners({ matcher: distributor.matcher, isPartial: () => distributor.isPartial });
  const hosts = Array.from({ length: SERVICES }, (_, index) => shared(`s${index}`, `h${index}.example.com`));
  distributor.replace(
    tableFor({ a: '127.0.0.1' }, [...hosts, { ...shared('all', '*.example.com'), tenant: 'other' }]),
    {
      epoch: 1,
      revision: 1,
      id: 'one',
    },
  );
  await done;
  assert.ok(Math.max(...sizes) < MAX_CHANGES_PER_PART, `${Math.max(...sizes)} changes in one part`);
  const [listener] = distributor.matcher.listeners.values();
  assert.ok(listener?.isShared);
  assert.equal(listener.findByServerName('h7.example.com')?.service.name, 's7');
  assert.equal(listener.findByServerName('other.example.com')?.service.name, 'all');
});
