import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apply, type Change, diff, EMPTY_TABLE, type EndpointsEntry, entriesOf, type RoutingTable } from '@weir/model';
import fc from 'fast-check';
import { LimiterRegistry } from '../../../src/limits/limiter-registry.ts';
import { SlotRegistry } from '../../../src/metering/slot-registry.ts';
import { NodeTable } from '../../../src/supervisor/table/node-table.ts';
import { PendingChanges, TableDistributor } from '../../../src/supervisor/table/table-distributor.ts';
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

test('of what comes while a large table is taken only the last of each entry waits, and it is taken as one', async () => {
  let marks = 0;
  let readings = 0;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const room = new TableDistributor({
    node: 'a',
    slots: new SlotRegistry(),
    limits: new LimiterRegistry(1),
    pool: { post: () => undefined, addCounterBlock: () => undefined, mark: () => ++marks },
    onRoutesChanged: () => undefined,
    // Each step of the take lasts a millisecond.
    sliceClock: () => readings++,
    onApplied: (changedAt) => {
      assert.equal(changedAt, 1, 'since when the oldest of them waits');
      resolve();
    },
  });
  const large = tableFor(
    NODES,
    Array.from({ length: 4_000 }, (_, index) => service(index)),
  );
  room.replace(large, positionOf(0));
  assert.ok(room.isPartial, 'this is about a take that needs several turns');
  const before = endpointsOf('s1', large);
  let table = large;
  for (let revision = 1; revision <= 10_000; revision += 1) {
    const entry = { ...before, endpoints: [{ address: '10.0.0.2', port: revision }] };
    const changes: Change[] = [{ kind: 'put', entry }];
    table = apply(table, changes);
    room.patch(changes, table, { position: positionOf(revision), changedAt: revision });
  }
  const reached = setInterval(() => room.onMarkReached(marks), 5);
  await done;
  clearInterval(reached);
  assert.equal(marks, 2);
  assert.equal(room.applied?.revision, 10_000);
  const entry = endpointsOf('s1', room.placed?.table ?? EMPTY_TABLE);
  assert.deepEqual(entry.endpoints, [{ address: '10.0.0.2', port: 10_000 }]);
});

test('never more changes wait than the table has entries: then any of them may be another', () => {
  const backlog = new PendingChanges();
  for (let revision = 1; revision <= 3; revision += 1) {
    const gone: Change = { kind: 'delete', id: `endpoints/gone-${revision}` };
    backlog.add([gone], tableFor({ a: '127.0.0.1' }, []), { position: positionOf(revision) });
  }
  assert.deepEqual(backlog.take()?.changes, undefined);
  assert.ok(backlog.isEmpty);
});

test('a backlog leads where its revisions lead one by one', () => {
  const services = fc.uniqueArray(fc.record({ index: fc.nat(3), shift: fc.nat(1), nodes: fc.subarray(['a', 'b']) }), {
    selector: ({ index }) => index,
    maxLength: 4,
  });
  fc.assert(
    fc.property(fc.array(fc.record({ services, whole: fc.boolean() }), { minLength: 1, maxLength: 5 }), (steps) => {
      const tables = steps.map(({ services: some }) =>
        tableFor(
          NODES,
          some.map(({ index, shift, nodes }) => service(index, { port: 80 + 2 * index + shift, nodes })),
        ),
      );
      const node = new NodeTable('a');
      const first = tables[0] ?? EMPTY_TABLE;
      node.replace(first);
      const backlog = new PendingChanges();
      let known = first;
      for (const [at, table] of tables.entries()) {
        if (steps[at]?.whole === true) backlog.replace(table, { position: positionOf(at) });
        else backlog.add(diff(known, table), table, { position: positionOf(at) });
        known = table;
      }
      const { table, changes } = backlog.take() ?? assert.fail();
      if (changes === undefined) node.replace(table);
      else node.patch(changes, table);
      const expected = new NodeTable('a');
      expected.replace(known);
      assert.deepEqual(new Map(node.part.entries), new Map(expected.part.entries));
    }),
  );
});
