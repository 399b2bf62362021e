// What the table in force tells of TenantPolicies that may not be read.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  entriesOf,
  heldFor,
  NOTHING_HELD,
  OPEN_GRANTS,
  type RoutingTable,
  type Snapshot,
  translate,
} from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import { type ReplaceableKind, standInsFor, withStandIns } from '../../src/snapshot/stand-ins.ts';
import { gist, IN_FORCE, meta, port, service, slice, WORLD, without } from '../fixtures/whole-world.ts';

const UNREAD_POLICIES: ReadonlySet<ReplaceableKind> = new Set(['TenantPolicy']);

test('what a tenant is allowed in place of a policy are single ports and addresses', () => {
  const { policies } = standInsFor(IN_FORCE, { pods: WORLD.pods, unread: UNREAD_POLICIES });
  const gold = policies.find(({ name }) => name === 'gold');
  assert.deepEqual(gold?.spec.grants, {
    ...OPEN_GRANTS,
    pools: ['edge'],
    nodesPerService: 1,
    allowedPorts: [53, 80, 443, 5432].map((number) => ({ from: number, to: number })),
    allowedHosts: ['shop.example.com'],
    allowedEndpointCIDRs: ['172.16.0.9/32'],
  });
});

describe('pods that can be read before policies can', () => {
  const both: ReadonlySet<ReplaceableKind> = new Set(['Pod', 'TenantPolicy']);
  const first = standInsFor(IN_FORCE, { pods: [], unread: both });
  const later = standInsFor(IN_FORCE, { pods: WORLD.pods, unread: UNREAD_POLICIES }, first);
  const allowedBy = ({ policies }: typeof first): readonly (readonly string[])[] =>
    policies.map(({ spec }) => spec.grants.allowedEndpointCIDRs);

  test('leave allowed only what is of none of them; before, nothing was, for what stood in for them had all', () => {
    assert.deepEqual(allowedBy(first), [[], []]);
    assert.deepEqual(allowedBy(later), [['172.16.0.9/32'], []]);
    const snapshot = withStandIns(without('TenantPolicy', without('Pod')), both, first);
    assert.deepEqual(gist(translate(deepFreeze(snapshot), heldFor(IN_FORCE)).table), gist(IN_FORCE));
    const read = withStandIns(without('TenantPolicy'), UNREAD_POLICIES, later);
    assert.deepEqual(gist(translate(deepFreeze(read), heldFor(IN_FORCE)).table), gist(IN_FORCE));
  });

  test('a pod that ends then is let go of, also where its address stands in a slice on', () => {
    const pods = WORLD.pods.filter(({ namespace }) => namespace !== 'gold-web');
    const snapshot = withStandIns({ ...without('TenantPolicy'), pods }, UNREAD_POLICIES, later);
    const { table } = translate(deepFreeze(snapshot), heldFor(IN_FORCE));
    const left = entriesOf(table, 'endpoints').filter(({ service: uid }) => uid === 'uid-gold-web-web');
    assert.deepEqual(
      left.flatMap(({ endpoints }) => endpoints),
      [],
    );
  });

  test('leave all others the same objects, and the policies, too, while the same can be read', () => {
    for (const field of ['namespaces', 'nodes', 'slices', 'pods'] as const) assert.equal(later[field], first[field]);
    assert.equal(standInsFor(IN_FORCE, { pods: [], unread: UNREAD_POLICIES }, later), later);
  });
});

test('a namespace in dispute keeps the endpoints that its policy allows, and its former tenant gets nothing of it', () => {
  const [gold, rival] = WORLD.policies;
  assert.ok(gold !== undefined && rival !== undefined);
  const grants = { ...OPEN_GRANTS, allowedEndpointCIDRs: ['172.16.0.0/12'] };
  const before: Snapshot = {
    ...WORLD,
    namespaces: [...WORLD.namespaces, { ...meta('old'), labels: { team: 'gold' } }],
    services: [...WORLD.services, service('old/external', { hasSelector: false, ports: [port(null, 9100)] })],
    slices: [...WORLD.slices, slice('old/external', ['172.16.0.7'])],
    policies: [
      { ...gold, spec: { ...gold.spec, limits: {} } },
      { ...rival, spec: { ...rival.spec, grants } },
    ],
  };
  const disputed: Snapshot = {
    ...before,
    namespaces: [...WORLD.namespaces, { ...meta('old'), labels: { team: 'rival' } }],
  };
  const table = translate(deepFreeze(disputed), heldFor(translate(deepFreeze(before), NOTHING_HELD).table)).table;
  const addresses = (of: RoutingTable): readonly string[] =>
    entriesOf(of, 'endpoints')
      .flatMap((entry) => (entry.service === 'uid-old-external' ? entry.endpoints : []))
      .map(({ address }) => address);
  assert.deepEqual(addresses(table), ['172.16.0.7']);
  const standIns = standInsFor(table, { pods: disputed.pods, unread: UNREAD_POLICIES });
  const snapshot = withStandIns({ ...disputed, policies: [] }, UNREAD_POLICIES, standIns);
  const after = translate(deepFreeze(snapshot), heldFor(table)).table;
  assert.deepEqual(gist(after), gist(table));
  const told = entriesOf(after, 'service').find(({ namespace }) => namespace === 'old')?.accepted.message ?? '';
  assert.match(
    told,
    /^it is not known whose tenant namespace "old" is: .* ask the operator to let the controller read/,
  );
  const granted = standIns.policies.find(({ name }) => name === 'gold')?.spec.grants;
  assert.deepEqual(granted?.allowedEndpointCIDRs, ['172.16.0.9/32']);
  assert.ok(granted?.allowedPorts?.every(({ from }) => from !== 9100));
});
