// A leader that ends between the parts of a large publication leaves a partial table in the store. Neither the allocations of the partial
// table nor the allocations of an earlier complete table may be lost.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, type RoutingTable, tableOf } from '@weir/model';
import { type MemoryStore, StoreError } from '@weir/store';
import { mergeAllocations } from '../../src/table/table-reconciler.ts';
import { startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const nodes = ['a', 'b', 'c', 'd'].map((name, index) => nodeObject(name, `10.0.0.${index + 1}`));
const tableIn = async (store: MemoryStore): Promise<RoutingTable> =>
  (await store.table.read())?.table ?? assert.fail('no complete table');
const allocationsIn = async (store: MemoryStore): Promise<readonly string[]> =>
  entriesOf(await tableIn(store), 'listener').map(({ id, service }) => `${service} ${id}`);

describe('a partial table', () => {
  test('keeps the allocations of Services, also of a Service that has become invalid since', async (context) => {
    const source = new FakeSource({ nodes: nodes.slice(0, 2), services: [serviceObject('web')] });
    const first = await startControllerHarness(context, { source });
    source.set({ nodes });
    await first.advance(10);
    const before = await allocationsIn(first.store);
    await first.controller.close();
    const { table } = first.store;
    const leader = await table.claimLeader();
    const predecessor = (await table.meta()) ?? assert.fail('nothing was written');
    await table.publish({ leader, predecessor, id: 'half', changes: [], complete: false });
    const invalid = serviceObject('web', { annotations: { 'weir.dev/nodes': 'many' } });
    await startControllerHarness(context, { ...first, source: new FakeSource({ nodes, services: [invalid] }) });
    assert.deepEqual(await allocationsIn(first.store), before);
    const [entry] = entriesOf(await tableIn(first.store), 'service');
    assert.equal(entry?.accepted.reason, 'InvalidAnnotation');
  });

  test('in a new store keeps the allocations of the Services in it', async (context) => {
    const services = Array.from({ length: 200 }, (_, index) => {
      return serviceObject(`web-${index}`, { ports: [port(1_000 + index)] });
    });
    const source = new FakeSource({ nodes: nodes.slice(2), services });
    const first = await startControllerHarness(context, { source });
    source.set({ nodes });
    await first.advance(10);
    const { table } = first.store;
    const publish = table.publish.bind(table);
    const end = Promise.withResolvers<never>();
    let parts = 0;
    table.publish = async (publication) => {
      parts += 1;
      return parts === 1 ? publish(publication) : end.promise;
    };
    first.store.faults.wipe();
    await first.advance(2_000);
    assert.equal(parts, 2, 'the table is larger than one part');
    const ended = first.controller.close();
    end.reject(new StoreError('AWAY', 'the controller ends now'));
    await ended;
    table.publish = publish;
    await startControllerHarness(context, { store: first.store, source: new FakeSource({ nodes, services }) });
    const placed = entriesOf(await tableIn(first.store), 'service').map((each) => each.nodes.join());
    assert.equal(placed.length, 200);
    assert.ok(placed.filter((where) => where === 'c,d').length > 160, placed.join(' '));
    assert.ok(
      placed.some((where) => where !== 'c,d'),
      'the other Services are allocated like new Services',
    );
  });

  test('overrides the older complete table for the Services in it', async (context) => {
    const one = await startControllerHarness(context, {
      source: new FakeSource({
        nodes: nodes.slice(0, 2),
        services: [serviceObject('api', { ports: [port(81)] }), serviceObject('web')],
      }),
    });
    const other = await startControllerHarness(context, {
      source: new FakeSource({
        nodes: nodes.slice(2),
        services: [serviceObject('api', { ports: [port(81)] }), serviceObject('web')],
      }),
    });
    const [complete, newer] = [await tableIn(one.store), await tableIn(other.store)];
    const partial = tableOf([...newer.entries.values()].filter(({ id }) => id !== 'service/uid-api'));
    const allocations = mergeAllocations(complete, partial);
    const places = [...allocations.listeners.values()].map(({ service, node }) => `${service} ${node}`).sort();
    assert.deepEqual(places, ['uid-api a', 'uid-api b', 'uid-web c', 'uid-web d']);
    assert.deepEqual([...allocations.services.keys()].sort(), ['uid-api', 'uid-web']);
  });
});

function port(number: number): ReturnType<typeof serviceObject>['ports'][number] {
  return { name: null, port: number, protocol: 'TCP', appProtocol: null, nodePort: null };
}
