import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import { SlotRegistry } from '../../../src/metering/slot-registry.ts';
import { DeferredListeners } from '../../../src/supervisor/listeners/listener-scheduling.ts';
import { TableDistributor } from '../../../src/supervisor/table/table-distributor.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const SERVICES = 2_000;
const MAX_ENTRIES_AT_ONCE = 500;

const shared = (name: string, host: string): TestService => ({
  name,
  port: 443,
  shared: true,
  settings: { hosts: [host], tlsPassthrough: true },
  endpoints: [{ address: '10.0.0.1', port: 443 }],
});

test('of a first table thousands of hosts under one wildcard come in parts, and their listener is not open before the last', async () => {
  const sizes: number[] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const room: TableDistributor = new TableDistributor({
    node: 'a',
    slots: new SlotRegistry(),
    limits: new LimiterRegistry(1),
    pool: {
      post: (order: WorkerCommand) => void sizes.push(order.kind === 'table' ? order.changes.length : 0),
      addCounterBlock: () => undefined,
      mark: () => 1,
    },
    onRoutesChanged(keys) {
      const due = putOff.due(keys.length === 0 ? [] : room.matcher.listeners.keys());
      assert.equal(due.size > 0, !room.isPartial, 'open after the last part, and only then');
      if (!room.isPartial) resolve();
    },
    onApplied: () => undefined,
  });
  const putOff = new DeferredListeners({ matcher: room.matcher, isPartial: () => room.isPartial });
  const hosts = Array.from({ length: SERVICES }, (_, index) => shared(`s${index}`, `h${index}.example.com`));
  room.replace(tableFor({ a: '127.0.0.1' }, [...hosts, { ...shared('all', '*.example.com'), tenant: 'other' }]), {
    epoch: 1,
    revision: 1,
    id: 'one',
  });
  await done;
  assert.ok(Math.max(...sizes) < MAX_ENTRIES_AT_ONCE, `${Math.max(...sizes)} changes at once`);
  const [listener] = room.matcher.listeners.values();
  assert.ok(listener?.isShared);
  assert.equal(listener.findByServerName('h7.example.com')?.service.name, 's7');
  assert.equal(listener.findByServerName('other.example.com')?.service.name, 'all');
});
