// What the table in force tells of TenantPolicies that may not be read.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  allocationsFor,
  entriesOf,
  NO_ALLOCATIONS,
  type RoutingTable,
  type Snapshot,
  translate,
  UNRESTRICTED_GRANTS,
} from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import { type FallbackKind, fallbackObjectsFor, withFallbackObjects } from '../../src/snapshot/fallback-objects.ts';
import {
  comparableEntries,
  FULL_SNAPSHOT,
  meta,
  port,
  service,
  slice,
  TABLE_IN_FORCE,
  without,
} from '../fixtures/full-snapshot.ts';

const UNREAD_POLICIES: ReadonlySet<FallbackKind> = new Set(['TenantPolicy']);

test('what a tenant is allowed in place of a policy are single ports and addresses', () => {
  const { policies } = fallbackObjectsFor(TABLE_IN_FORCE, {
    pods: FULL_SNAPSHOT.pods,
    unreadableKinds: UNREAD_POLICIES,
  });
  const gold = policies.find(({ name }) => name === 'gold');
  assert.deepEqual(gold?.spec.grants, {
    ...UNRESTRICTED_GRANTS,
    pools: ['edge'],
    nodesPerService: 1,
    allowedPorts: [53, 80, 443, 5432].map((number) => ({ from: number, to: number })),
    allowedHosts: ['shop.example.com'],
    allowedEndpointCIDRs: ['172.16.0.9/32'],
  });
});

describe('pods that can be read before policies can', () => {
  const both: ReadonlySet<FallbackKind> = new Set(['Pod', 'TenantPolicy']);
  const first = fallbackObjectsFor(TABLE_IN_FORCE, { pods: [], unreadableKinds: both });
  const later = fallbackObjectsFor(
    TABLE_IN_FORCE,
    { pods: FULL_SNAPSHOT.pods, unreadableKinds: UNREAD_POLICIES },
    first,
  );
  const allowedBy = ({ policies }: typeof first): readonly (readonly string[])[] =>
    policies.map(({ spec }) => spec.grants.allowedEndpointCIDRs);

  test('leave allowed only what is of none of them; before, nothing was, for what stood in for them had all', () => {
    assert.deepEqual(allowedBy(first), [[], []]);
    assert.deepEqual(allowedBy(later), [['172.16.0.9/32'], []]);
    const snapshot = withFallbackObjects(without('TenantPolicy', without('Pod')), both, first);
    assert.deepEqual(
      comparableEntries(translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE)).table),
      comparableEntries(TABLE_IN_FORCE),
    );
    const read = withFallbackObjects(without('TenantPolicy'), UNREAD_POLICIES, later);
    assert.deepEqual(
      comparableEntries(translate(deepFreeze(read), allocationsFor(TABLE_IN_FORCE)).table),
      comparableEntries(TABLE_IN_FORCE),
    );
  });

  test('a pod that ends then is let go of, also where its address stands in a slice on', () => {
    const pods = FULL_SNAPSHOT.pods.filter(({ namespace }) => namespace !== 'gold-web');
    const snapshot = withFallbackObjects({ ...without('TenantPolicy'), pods }, UNREAD_POLICIES, later);
    const { table } = translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE));
    const left = entriesOf(table, 'endpoints').filter(({ service: uid }) => uid === 'uid-gold-web-web');
    assert.deepEqual(
      left.flatMap(({ endpoints }) => endpoints),
      [],
    );
  });

  test('leave all others the same objects, and the policies, too, while the same can be read', () => {
    for (const field of ['namespaces', 'nodes', 'slices', 'pods'] as const) assert.equal(later[field], first[field]);
    assert.equal(fallbackObjectsFor(TABLE_IN_FORCE, { pods: [], unreadableKinds: UNREAD_POLICIES }, later), later);
  });
});

test('a namespace in dispute keeps the endpoints that its policy allows, and its former tenant gets nothing of it', () => {
  const [gold, rival] = FULL_SNAPSHOT.policies;
  assert.ok(gold !== undefined && rival !== undefined);
  const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['172.16.0.0/12'] };
  const before: Snapshot = {
    ...FULL_SNAPSHOT,
    namespaces: [...FULL_SNAPSHOT.namespaces, { ...meta('old'), labels: { team: 'gold' } }],
    services: [...FULL_SNAPSHOT.services, service('old/external', { hasSelector: false, ports: [port(null, 9100)] })],
    slices: [...FULL_SNAPSHOT.slices, slice('old/external', ['172.16.0.7'])],
    policies: [
      { ...gold, spec: { ...gold.spec, limits: {} } },
      { ...rival, spec: { ...rival.spec, grants } },
    ],
  };
  const disputed: Snapshot = {
    ...before,
    namespaces: [...FULL_SNAPSHOT.namespaces, { ...meta('old'), labels: { team: 'rival' } }],
  };
  const table = translate(
    deepFreeze(disputed),
    allocationsFor(translate(deepFreeze(before), NO_ALLOCATIONS).table),
  ).table;
  const addresses = (of: RoutingTable): readonly string[] =>
    entriesOf(of, 'endpoints')
      .flatMap((entry) => (entry.service === 'uid-old-external' ? entry.endpoints : []))
      .map(({ address }) => address);
  assert.deepEqual(addresses(table), ['172.16.0.7']);
  const standIns = fallbackObjectsFor(table, { pods: disputed.pods, unreadableKinds: UNREAD_POLICIES });
  const snapshot = withFallbackObjects({ ...disputed, policies: [] }, UNREAD_POLICIES, standIns);
  const after = translate(deepFreeze(snapshot), allocationsFor(table)).table;
  assert.deepEqual(comparableEntries(after), comparableEntries(table));
  const told = entriesOf(after, 'service').find(({ namespace }) => namespace === 'old')?.accepted.message ?? '';
  assert.match(told, /^the tenant of namespace "old" is unknown: .* ask the operator to let the controller read/);
  const granted = standIns.policies.find(({ name }) => name === 'gold')?.spec.grants;
  assert.deepEqual(granted?.allowedEndpointCIDRs, ['172.16.0.9/32']);
  assert.ok(granted?.allowedPorts?.every(({ from }) => from !== 9100));
});
