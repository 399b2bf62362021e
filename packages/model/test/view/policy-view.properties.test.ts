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

/** Random policies with few different values, so that policies conflict on namespaces and tenants. */
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

/** Random snapshots with one Service in each namespace. The table entry of the Service shows the tenant of the namespace. */
const worlds: fc.Arbitrary<Snapshot> = fc.record({ policies, namespaces }).map((parts) => {
  const services = parts.namespaces.map(({ name }, i) => service(`${name}/web`, { ports: [port(80 + i)] }));
  return deepFreeze(snapshotOf({ ...parts, services }));
});

test('each namespace appears in one policy, as part of a tenant or as refused', () => {
  fc.assert(
    fc.property(worlds, (snapshot) => {
      const views = policyViewsFor(snapshot);
      const { table, statuses } = translate(snapshot, NO_ALLOCATIONS);
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
        else assert.equal(refusing.length, isSelected(name, snapshot) ? 1 : 0);
      }
    }),
    { numRuns: 500 },
  );
});

/** Reports whether a TenantPolicy selects the namespace. If none does, the fleet's default policy applies. */
function isSelected(name: string, snapshot: Snapshot): boolean {
  const policies = snapshot.policies.map((each) => ({ policy: each }));
  return snapshot.namespaces.some((each) => each.name === name && policiesSelecting(each, policies).length > 0);
}

test('counts equal the lists, and all policies together count each namespace once apart from overrides', () => {
  fc.assert(
    fc.property(worlds, (snapshot) => {
      const lengthOf = (groups: readonly { readonly namespaces: readonly string[] }[]): number =>
        groups.reduce((sum, { namespaces: each }) => sum + each.length, 0);
      let counted = 0;
      for (const view of policyViewsFor(snapshot)) {
        assert.equal(view.tenantCount, view.tenants.length);
        assert.equal(view.namespaceCount, lengthOf(view.tenants));
        assert.equal(view.refusedCount, lengthOf(view.conflicts) + view.unlabelled.length);
        assert.equal(view.overriddenCount, lengthOf(view.overridden));
        counted += view.namespaceCount + view.refusedCount;
      }
      const isEverywhere = snapshot.policies.some(
        ({ spec }) => Object.keys(spec.namespaceSelector.matchLabels).length === 0,
      );
      if (isEverywhere) assert.equal(counted, snapshot.namespaces.length);
      else assert.ok(counted <= snapshot.namespaces.length);
    }),
    { numRuns: 500 },
  );
});
