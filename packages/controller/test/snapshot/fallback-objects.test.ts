// A controller that may not read a kind, and what the table in force tells it instead.
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

function decidedWithout(kind: FallbackKind, change: Partial<Snapshot> = {}): RoutingTable {
  const read = without(kind, { ...FULL_SNAPSHOT, ...change });
  const snapshot = withFallbackObjects(
    read,
    new Set([kind]),
    fallbackObjectsFor(TABLE_IN_FORCE, { pods: read.pods, unreadableKinds: new Set([kind]) }),
  );
  return translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE)).table;
}

describe('what the table tells of a kind that may not be read', () => {
  for (const kind of FALLBACK_KINDS) {
    test(`leaves the table as it is without ${SNAPSHOT_FIELDS[kind]}, which matter`, () => {
      assert.deepEqual(comparableEntries(decidedWithout(kind)), comparableEntries(TABLE_IN_FORCE));
      const nothing = translate(deepFreeze(without(kind)), allocationsFor(TABLE_IN_FORCE)).table;
      assert.notDeepEqual(comparableEntries(nothing), comparableEntries(TABLE_IN_FORCE));
    });
  }

  const reasonOf = (table: RoutingTable, path: string): string | undefined =>
    entriesOf(table, 'service').find(({ namespace, name }) => `${namespace}/${name}` === path)?.accepted.reason;

  test('lets everything else change: a new Service is served without nodes, pods or slices to read', () => {
    const services = [...FULL_SNAPSHOT.services, service('plain/new', { ports: [port(null, 9443)] })];
    for (const kind of ['Node', 'Pod', 'EndpointSlice'] as const) {
      const table = decidedWithout(kind, { services });
      assert.equal(reasonOf(table, 'plain/new'), 'Accepted');
      assert.equal(entriesOf(table, 'listener').filter((each) => each.service === 'uid-plain-new').length, 3);
    }
  });

  test('does not lift limits: a Service too many is refused without policies to read', () => {
    const services = [...FULL_SNAPSHOT.services, service('gold-web/third', { ports: [port(null, 81)] })];
    for (const kind of ['TenantPolicy', 'Namespace'] as const) {
      const table = decidedWithout(kind, { services });
      assert.equal(reasonOf(table, 'gold-web/third'), 'PortNotAllowed');
      assert.equal(
        reasonOf(
          decidedWithout(kind, {
            services: [...FULL_SNAPSHOT.services, service('gold-web/third', { ports: [port(null, 80)] })],
          }),
          'gold-web/third',
        ),
        'QuotaExceeded',
      );
    }
  });

  test('believes no address that was not believed before, without pods to read', () => {
    const slices = [...FULL_SNAPSHOT.slices, slice('plain/both', ['10.244.9.9'], meta('both-9'))];
    const table = decidedWithout('Pod', { slices });
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.ok(addresses.includes('10.244.1.1'));
    assert.ok(!addresses.includes('10.244.9.9'));
    assert.equal(reasonOf(table, 'plain/both'), 'EndpointForbidden');
  });

  test('is nothing when there is no table, and then only what needs none of it is served', () => {
    const empty = fallbackObjectsFor({ entries: new Map() }, { pods: [], unreadableKinds: new Set(['Pod']) });
    const table = translate(withFallbackObjects(without('Pod'), new Set(['Pod']), empty), NO_ALLOCATIONS).table;
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.deepEqual(addresses, ['172.16.0.9']);
  });
});

test('endpoints that terminate, where none is ready, stand in as such', () => {
  const [leaving] = slice('plain/both', ['10.244.1.1']).endpoints;
  const endpoints = [
    { ...leaving, addresses: ['10.244.1.1'], zone: null, ready: false, serving: true, terminating: true },
  ];
  const world = { ...FULL_SNAPSHOT, slices: [slice('plain/both', [], { endpoints })] };
  const { table } = translate(deepFreeze(world), NO_ALLOCATIONS);
  const unreadableKinds: ReadonlySet<FallbackKind> = new Set(['EndpointSlice']);
  const standIns = fallbackObjectsFor(table, { pods: FULL_SNAPSHOT.pods, unreadableKinds });
  const after = translate(
    deepFreeze(withFallbackObjects(without('EndpointSlice'), unreadableKinds, standIns)),
    allocationsFor(table),
  ).table;
  assert.deepEqual(comparableEntries(after), comparableEntries(table));
});
