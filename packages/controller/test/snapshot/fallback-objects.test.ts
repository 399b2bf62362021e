import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { allocationsFor, entriesOf, NO_ALLOCATIONS, type RoutingTable, type Snapshot, translate } from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import {
  FALLBACK_KINDS,
  type FallbackKind,
  fallbackObjectsFor,
  withFallbackObjects,
} from '../../src/snapshot/fallback-objects.ts';
import {
  comparableEntries,
  FULL_SNAPSHOT,
  meta,
  port,
  SNAPSHOT_FIELDS,
  service,
  slice,
  TABLE_IN_FORCE,
  without,
} from '../fixtures/full-snapshot.ts';

function tableWithout(kind: FallbackKind, change: Partial<Snapshot> = {}): RoutingTable {
  const readable = without(kind, { ...FULL_SNAPSHOT, ...change });
  const snapshot = withFallbackObjects(
    readable,
    new Set([kind]),
    fallbackObjectsFor(TABLE_IN_FORCE, { pods: readable.pods, unreadableKinds: new Set([kind]) }),
  );
  return translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE)).table;
}

describe('fallback objects of an unreadable kind', () => {
  for (const kind of FALLBACK_KINDS) {
    test(`keep the table unchanged without ${SNAPSHOT_FIELDS[kind]}`, () => {
      assert.deepEqual(comparableEntries(tableWithout(kind)), comparableEntries(TABLE_IN_FORCE));
      const nothing = translate(deepFreeze(without(kind)), allocationsFor(TABLE_IN_FORCE)).table;
      assert.notDeepEqual(comparableEntries(nothing), comparableEntries(TABLE_IN_FORCE));
    });
  }

  const reasonOf = (table: RoutingTable, path: string): string | undefined =>
    entriesOf(table, 'service').find(({ namespace, name }) => `${namespace}/${name}` === path)?.accepted.reason;

  test('allow other changes: a new Service is served without readable nodes, pods or slices', () => {
    const services = [...FULL_SNAPSHOT.services, service('plain/new', { ports: [port(null, 9443)] })];
    for (const kind of ['Node', 'Pod', 'EndpointSlice'] as const) {
      const table = tableWithout(kind, { services });
      assert.equal(reasonOf(table, 'plain/new'), 'Accepted');
      assert.equal(entriesOf(table, 'listener').filter((each) => each.service === 'uid-plain-new').length, 3);
    }
  });

  test('keep limits: a Service beyond the quota is refused without readable policies', () => {
    const services = [...FULL_SNAPSHOT.services, service('gold-web/third', { ports: [port(null, 81)] })];
    for (const kind of ['TenantPolicy', 'Namespace'] as const) {
      const table = tableWithout(kind, { services });
      assert.equal(reasonOf(table, 'gold-web/third'), 'PortNotAllowed');
      assert.equal(
        reasonOf(
          tableWithout(kind, {
            services: [...FULL_SNAPSHOT.services, service('gold-web/third', { ports: [port(null, 80)] })],
          }),
          'gold-web/third',
        ),
        'QuotaExceeded',
      );
    }
  });

  test('trust no new address without readable pods', () => {
    const slices = [...FULL_SNAPSHOT.slices, slice('plain/both', ['10.244.9.9'], meta('both-9'))];
    const table = tableWithout('Pod', { slices });
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.ok(addresses.includes('10.244.1.1'));
    assert.ok(!addresses.includes('10.244.9.9'));
    assert.equal(reasonOf(table, 'plain/both'), 'EndpointForbidden');
  });

  test('are empty without a table, so only endpoints that need no pods are served', () => {
    const empty = fallbackObjectsFor({ entries: new Map() }, { pods: [], unreadableKinds: new Set(['Pod']) });
    const table = translate(withFallbackObjects(without('Pod'), new Set(['Pod']), empty), NO_ALLOCATIONS).table;
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.deepEqual(addresses, ['172.16.0.9']);
  });
});

test('fallback slices keep terminating endpoints as terminating', () => {
  const [leaving] = slice('plain/both', ['10.244.1.1']).endpoints;
  const endpoints = [
    { ...leaving, addresses: ['10.244.1.1'], zone: null, ready: false, serving: true, terminating: true },
  ];
  const snapshot = { ...FULL_SNAPSHOT, slices: [slice('plain/both', [], { endpoints })] };
  const { table } = translate(deepFreeze(snapshot), NO_ALLOCATIONS);
  const unreadableKinds: ReadonlySet<FallbackKind> = new Set(['EndpointSlice']);
  const fallbackObjects = fallbackObjectsFor(table, { pods: FULL_SNAPSHOT.pods, unreadableKinds });
  const after = translate(
    deepFreeze(withFallbackObjects(without('EndpointSlice'), unreadableKinds, fallbackObjects)),
    allocationsFor(table),
  ).table;
  assert.deepEqual(comparableEntries(after), comparableEntries(table));
});
