import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  entriesOf,
  NO_ALLOCATIONS,
  policiesSelecting,
  policyViewsFor,
  type Snapshot,
  type TenantFrom,
  type TenantPolicyObject,
  translate,
} from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import fc from 'fast-check';
import { namespace, policy, port, service, snapshotOf, team } from '../fixtures/snapshot.ts';

/** Few names, so that policies meet at namespaces and at tenants. */
const policies: fc.Arbitrary<TenantPolicyObject[]> = fc.uniqueArray(
  fc
    .record({
      name: fc.constantFrom('p', 'q', 'r', 's'),
      priority: fc.nat(2),
      selector: fc.constantFrom(team('red'), team('blue'), { matchLabels: {}, matchExpressions: [] }),
      tenantFrom: fc.constantFrom<TenantFrom>(
        { kind: 'namespace' },
        { kind: 'label', label: 'owner' },
        { kind: 'name', name: 'a' },
        { kind: 'name', name: 'gold' },
      ),
    })
    .map(({ name, priority, selector, tenantFrom }) =>
      policy(name, { priority, namespaceSelector: selector, tenantFrom }),
    ),
  { selector: ({ name }) => name },
);

const namespaces = fc.tuple(
  ...['a', 'b', 'c'].map((name) =>
    fc
      .record({ team: fc.constantFrom('red', 'blue', ''), owner: fc.constantFrom('gold', 'a', 'x', '') })
      .map((labels) => namespace(name, labels)),
  ),
);

/** With a Service in each namespace, by which translate tells whose tenant it is. */
const worlds: fc.Arbitrary<Snapshot> = fc.record({ policies, namespaces }).map((parts) => {
  const services = parts.namespaces.map(({ name }, i) => service(`${name}/web`, { ports: [port(80 + i)] }));
  return deepFreeze(snapshotOf({ ...parts, services }));
});

test('each namespace appears in one policy, as part of a tenant or as refused', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const views = policyViewsFor(world);
      const { table, statuses } = translate(world, NO_ALLOCATIONS);
      const tenants = new Map(entriesOf(table, 'tenant').map((entry) => [entry.name, entry]));
      for (const { namespace: name, tenant, accepted } of statuses) {
        const sayingTenant = views.filter((view) => view.tenants.some((each) => each.namespaces.includes(name)));
        const refusing = views.filter((view) =>
          [view.unlabelled, ...view.conflicts.map((each) => each.namespaces)].flat().includes(name),
        );
        const isRefused = accepted.reason === 'TenantConflict';
        const owner = tenant === null ? null : (tenants.get(tenant)?.policy ?? null);
        assert.deepEqual(
          sayingTenant.map((view) => view.name),
          isRefused || owner === null ? [] : [owner],
        );
        if (!isRefused) assert.deepEqual(refusing, []);
        else assert.equal(refusing.length, isSelected(name, world) ? 1 : 0);
      }
    }),
    { numRuns: 500 },
  );
});

/** Else it is the fleet's default policy that counts for it. */
function isSelected(name: string, world: Snapshot): boolean {
  const policies = world.policies.map((each) => ({ policy: each }));
  return world.namespaces.some((each) => each.name === name && policiesSelecting(each, policies).length > 0);
}

test('counts equal the lists, and all policies together count each namespace once apart from overrides', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const lengthOf = (groups: readonly { readonly namespaces: readonly string[] }[]): number =>
        groups.reduce((sum, { namespaces: each }) => sum + each.length, 0);
      let counted = 0;
      for (const view of policyViewsFor(world)) {
        assert.equal(view.tenantCount, view.tenants.length);
        assert.equal(view.namespaceCount, lengthOf(view.tenants));
        assert.equal(view.refusedCount, lengthOf(view.conflicts) + view.unlabelled.length);
        assert.equal(view.overriddenCount, lengthOf(view.overridden));
        counted += view.namespaceCount + view.refusedCount;
      }
      const isEverywhere = world.policies.some(
        ({ spec }) => Object.keys(spec.namespaceSelector.matchLabels).length === 0,
      );
      if (isEverywhere) assert.equal(counted, world.namespaces.length);
      else assert.ok(counted <= world.namespaces.length);
    }),
    { numRuns: 500 },
  );
});
