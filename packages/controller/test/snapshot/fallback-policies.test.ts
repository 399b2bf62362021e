import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  allocationsFor,
  type Entry,
  entriesOf,
  NO_ALLOCATIONS,
  type RoutingTable,
  type RuleRecord,
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

const UNREADABLE_POLICIES: ReadonlySet<FallbackKind> = new Set(['TenantPolicy']);

test('a fallback policy grants the single ports and addresses in use', () => {
  const { policies } = fallbackObjectsFor(TABLE_IN_FORCE, {
    pods: FULL_SNAPSHOT.pods,
    unreadableKinds: UNREADABLE_POLICIES,
  });
  const gold = policies.find(({ name }) => name === 'gold');
  assert.deepEqual(gold?.spec.grants, {
    ...UNRESTRICTED_GRANTS,
    pools: ['edge'],
    nodesPerService: 1,
    maxNodesPerService: null,
    allowedPorts: [53, 80, 443, 5432].map((number) => ({ from: number, to: number })),
    allowedHosts: ['shop.example.com'],
    allowedEndpointCIDRs: ['172.16.0.9/32'],
  });
});

test('a fallback policy has the limits without throttles, and the rules that act', () => {
  const entries = [...TABLE_IN_FORCE.entries.values()].map((entry): Entry => {
    if (entry.kind !== 'tenant' || entry.policy !== 'gold') return entry;
    const record: RuleRecord = {
      rule: 'slow',
      metric: 'requestsPerSecond',
      above: 9,
      action: 'Throttle',
      throttleTo: 8,
      since: 1,
      until: null,
      value: 10,
      forMs: 60_000,
      phase: 'acting',
    };
    return { ...entry, limits: { ...entry.limits, requestsPerSecond: 8 }, policyLimits: entry.limits, rules: [record] };
  });
  const throttled = { entries: new Map(entries.map((entry) => [entry.id, entry])) };
  const context = { pods: FULL_SNAPSHOT.pods, unreadableKinds: UNREADABLE_POLICIES };
  const [free, gold] = [TABLE_IN_FORCE, throttled].map(
    (table) => fallbackObjectsFor(table, context).policies.find(({ name }) => name === 'gold')?.spec,
  );
  assert.deepEqual(gold?.limits, free?.limits);
  assert.deepEqual(
    gold?.rules?.map(({ name, throttleTo }) => [name, throttleTo]),
    [['slow', 8]],
  );
});

describe('fallback policies when pods become readable first', () => {
  const both: ReadonlySet<FallbackKind> = new Set(['Pod', 'TenantPolicy']);
  const first = fallbackObjectsFor(TABLE_IN_FORCE, { pods: [], unreadableKinds: both });
  const later = fallbackObjectsFor(
    TABLE_IN_FORCE,
    { pods: FULL_SNAPSHOT.pods, unreadableKinds: UNREADABLE_POLICIES },
    first,
  );
  const allowedBy = ({ policies }: typeof first): readonly (readonly string[])[] =>
    policies.map(({ spec }) => spec.grants.allowedEndpointCIDRs);

  test('allow exactly the endpoints that belong to no readable pod', () => {
    assert.deepEqual(allowedBy(first), [[], []]);
    assert.deepEqual(allowedBy(later), [['172.16.0.9/32'], []]);
    const snapshot = withFallbackObjects(without('TenantPolicy', without('Pod')), both, first);
    assert.deepEqual(
      comparableEntries(translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE)).table),
      comparableEntries(TABLE_IN_FORCE),
    );
    const withPods = withFallbackObjects(without('TenantPolicy'), UNREADABLE_POLICIES, later);
    assert.deepEqual(
      comparableEntries(translate(deepFreeze(withPods), allocationsFor(TABLE_IN_FORCE)).table),
      comparableEntries(TABLE_IN_FORCE),
    );
  });

  test('drop the address of a pod that ends, even if a slice still has it', () => {
    const pods = FULL_SNAPSHOT.pods.filter(({ namespace }) => namespace !== 'gold-web');
    const snapshot = withFallbackObjects({ ...without('TenantPolicy'), pods }, UNREADABLE_POLICIES, later);
    const { table } = translate(deepFreeze(snapshot), allocationsFor(TABLE_IN_FORCE));
    const left = entriesOf(table, 'endpoints').filter(({ service: uid }) => uid === 'uid-gold-web-web');
    assert.deepEqual(
      left.flatMap(({ endpoints }) => endpoints),
      [],
    );
  });

  test('keep the identity of other objects, and of policies while the same kinds are readable', () => {
    for (const field of ['namespaces', 'nodes', 'slices', 'pods'] as const) assert.equal(later[field], first[field]);
    assert.equal(fallbackObjectsFor(TABLE_IN_FORCE, { pods: [], unreadableKinds: UNREADABLE_POLICIES }, later), later);
  });
});

test('a disputed namespace keeps its allowed endpoints, and its former tenant gets no grants from it', () => {
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
  const addresses = (routingTable: RoutingTable): readonly string[] =>
    entriesOf(routingTable, 'endpoints')
      .flatMap((entry) => (entry.service === 'uid-old-external' ? entry.endpoints : []))
      .map(({ address }) => address);
  assert.deepEqual(addresses(table), ['172.16.0.7']);
  const fallbackObjects = fallbackObjectsFor(table, { pods: disputed.pods, unreadableKinds: UNREADABLE_POLICIES });
  const snapshot = withFallbackObjects({ ...disputed, policies: [] }, UNREADABLE_POLICIES, fallbackObjects);
  const after = translate(deepFreeze(snapshot), allocationsFor(table)).table;
  assert.deepEqual(comparableEntries(after), comparableEntries(table));
  const message = entriesOf(after, 'service').find(({ namespace }) => namespace === 'old')?.accepted.message ?? '';
  assert.match(message, /^the tenant of namespace "old" is unknown: .* ask the operator to restore the permission/);
  const granted = fallbackObjects.policies.find(({ name }) => name === 'gold')?.spec.grants;
  assert.deepEqual(granted?.allowedEndpointCIDRs, ['172.16.0.9/32']);
  assert.ok(granted?.allowedPorts?.every(({ from }) => from !== 9100));
});
