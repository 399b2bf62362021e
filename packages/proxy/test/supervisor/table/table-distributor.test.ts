import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apply, type Change, diff, EMPTY_TABLE, type EndpointsEntry, entriesOf, type RoutingTable } from '@weir/model';
import fc from 'fast-check';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import { SlotRegistry } from '../../../src/metering/slot-registry.ts';
import { DeferredListeners } from '../../../src/supervisor/listeners/listener-scheduling.ts';
import { NodeTable } from '../../../src/supervisor/table/node-table.ts';
import { PendingChanges, TableDistributor } from '../../../src/supervisor/table/table-distributor.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { type TestService, tableFor, uidOf } from '../../fixtures/tables.ts';

const NODES = { a: '127.0.0.1', b: '127.0.0.2' };
const positionOf = (revision: number): { epoch: number; revision: number; id: string } => ({
  epoch: 1,
  revision,
  id: `${revision}`,
});
const service = (index: number, change: Partial<TestService> = {}): TestService => ({
  name: `s${index}`,
  port: 10_000 + index,
  endpoints: [{ address: '10.0.0.1', port: index + 1 }],
  ...change,
});
const endpointsOf = (name: string, table: RoutingTable): EndpointsEntry =>
  entriesOf(table, 'endpoints').find(({ service: uid }) => uid === uidOf({ name })) ?? assert.fail();

test('TableDistributor merges the revisions that arrive while a large table is being applied', async () => {
  let marks = 0;
  let readings = 0;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const distributor = new TableDistributor({
    node: 'a',
    slots: new SlotRegistry(),
    limits: new LimiterRegistry(1),
    pool: { post: () => undefined, addCounterBlock: () => undefined, mark: () => ++marks },
    onRoutesChanged: () => undefined,
    onLimitsChanged: () => undefined,
    // This clock advances by one millisecond each time it is read.
    sliceClock: () => readings++,
    onApplied: (changedAt) => {
      assert.equal(changedAt, 1, 'the time of the oldest merged revision');
      resolve();
    },
  });
  const large = tableFor(
    NODES,
    Array.from({ length: 4_000 }, (_, index) => service(index)),
  );
  distributor.replace(large, positionOf(0));
  assert.ok(distributor.isPartial, 'the large table needs several turns of the event loop');
  const before = endpointsOf('s1', large);
  let table = large;
  for (let revision = 1; revision <= 10_000; revision += 1) {
    const entry = { ...before, endpoints: [{ address: '10.0.0.2', port: revision }] };
    const changes: Change[] = [{ kind: 'put', entry }];
    table = apply(table, changes);
    distributor.patch(changes, table, { position: positionOf(revision), changedAt: revision });
  }
  const reached = setInterval(() => distributor.onMarkReached(marks), 5);
  await done;
  clearInterval(reached);
  assert.equal(marks, 2);
  assert.equal(distributor.applied?.revision, 10_000);
  const entry = endpointsOf('s1', distributor.placed?.table ?? EMPTY_TABLE);
  assert.deepEqual(entry.endpoints, [{ address: '10.0.0.2', port: 10_000 }]);
});

test('PendingChanges forgets the single changes when there are more of them than the table has entries', () => {
  const pending = new PendingChanges();
  for (let revision = 1; revision <= 3; revision += 1) {
    const deletion: Change = { kind: 'delete', id: `endpoints/gone-${revision}` };
    pending.add([deletion], tableFor({ a: '127.0.0.1' }, []), { position: positionOf(revision) });
  }
  assert.deepEqual(pending.take()?.changes, undefined);
  assert.ok(pending.isEmpty);
});

test('PendingChanges leads to the same table as the revisions one by one', () => {
  const services = fc.uniqueArray(fc.record({ index: fc.nat(3), shift: fc.nat(1), nodes: fc.subarray(['a', 'b']) }), {
    selector: ({ index }) => index,
    maxLength: 4,
  });
  fc.assert(
    fc.property(
      fc.array(fc.record({ services, isComplete: fc.boolean() }), { minLength: 1, maxLength: 5 }),
      (steps) => {
        const tables = steps.map(({ services: some }) =>
          tableFor(
            NODES,
            some.map(({ index, shift, nodes }) => service(index, { port: 80 + 2 * index + shift, nodes })),
          ),
        );
        const node = new NodeTable('a');
        const first = tables[0] ?? EMPTY_TABLE;
        node.replace(first);
        const pending = new PendingChanges();
        let known = first;
        for (const [at, table] of tables.entries()) {
          if (steps[at]?.isComplete === true) pending.replace(table, { position: positionOf(at) });
          else pending.add(diff(known, table), table, { position: positionOf(at) });
          known = table;
        }
        const { table, changes } = pending.take() ?? assert.fail();
        if (changes === undefined) node.replace(table);
        else node.patch(changes, table);
        const expected = new NodeTable('a');
        expected.replace(known);
        assert.deepEqual(new Map(node.part.entries), new Map(expected.part.entries));
      },
    ),
  );
});

const SERVICES = 2_000;
const MAX_CHANGES_PER_PART = 500;

const sharedService = (name: string, host: string): TestService => ({
  name,
  port: 443,
  shared: true,
  settings: { hosts: [host], tlsPassthrough: true },
  endpoints: [{ address: '10.0.0.1', port: 443 }],
});

test('TableDistributor splits a first table with thousands of hosts below a wildcard, and defers their shared listener until the last part', async () => {
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
    onLimitsChanged: () => undefined,
    onRoutesChanged(keys) {
      const due = deferred.due(keys.length === 0 ? [] : distributor.matcher.listeners.keys());
      assert.equal(due.size > 0, !distributor.isPartial, 'the listener is due after the last part, and not before');
      if (!distributor.isPartial) resolve();
    },
    onApplied: () => undefined,
  });
  const deferred = new DeferredListeners({ matcher: distributor.matcher, isPartial: () => distributor.isPartial });
  const hosts = Array.from({ length: SERVICES }, (_, index) => sharedService(`s${index}`, `h${index}.example.com`));
  distributor.replace(
    tableFor({ a: '127.0.0.1' }, [...hosts, { ...sharedService('all', '*.example.com'), tenant: 'other' }]),
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
