// Regression tests, in addition to the property tests: one tenant must not affect another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allocationsFor, entriesOf, NO_ALLOCATIONS, translate, UNRESTRICTED_GRANTS } from '@weir/model';
import { namespace, node, pod, policy, port, service, slice, snapshotOf, team } from '../fixtures/snapshot.ts';

test('keeps a Service whose tenant is disputed, without new ports and without the names of other tenants', () => {
  const [one, two] = [service('a/one'), service('b/two', { ports: [port(81)] })];
  const before = translate(snapshotOf({ services: [one, two] }), NO_ALLOCATIONS);
  const byLabel = policy('by-label', { tenantFrom: { kind: 'label', label: 'tenant' } });
  const greedy = service('a/one', { ports: [port(80), port(81, { name: 'taken' }), port(82)] });
  const disputed = snapshotOf({ services: [greedy, two], policies: [byLabel] });
  const { statuses } = translate(disputed, allocationsFor(before.table));
  const [taken, free] = statuses[0]?.ports.slice(1).map((each) => each.error) ?? [];
  for (const error of [taken, free]) {
    assert.equal(error?.reason, 'TenantConflict');
    assert.match(error.message, /has no label "tenant"/);
  }
  assert.deepEqual(
    statuses.map(({ nodes }) => nodes),
    [['n1'], ['n1']],
  );
});

test('keeps only the endpoints that the policy allows for a Service whose tenant is disputed', () => {
  const networks = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['172.16.0.0/12'] };
  const gold = { kind: 'name', name: 'gold' } as const;
  const late = policy('late', { namespaceSelector: team('late'), tenantFrom: gold, grants: networks });
  const first = policy('first', { priority: 9, namespaceSelector: team('first'), tenantFrom: gold });
  const given = {
    settings: { ...snapshotOf({}).settings, trust: { kind: 'pods', serviceCidrs: [] } } as const,
    namespaces: [namespace('first', { team: 'first' }), namespace('late', { team: 'late' })],
    services: [service('late/db')],
    slices: [slice('late/db', ['172.16.0.9', '203.0.113.9'])],
  };
  const before = translate(snapshotOf({ ...given, policies: [late] }), NO_ALLOCATIONS);
  const { table, statuses } = translate(
    snapshotOf({ ...given, policies: [late, first] }),
    allocationsFor(before.table),
  );
  assert.equal(statuses[0]?.accepted.reason, 'TenantConflict');
  const endpoints = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
  assert.deepEqual(endpoints, ['172.16.0.9']);
});

test('refuses a huge source range quickly, without copying it into the table', () => {
  const started = process.hrtime.bigint();
  const endless = service('a/web', { sourceRanges: [':'.repeat(40_000)] });
  const accepted = translate(snapshotOf({ services: [endless] }), NO_ALLOCATIONS).statuses[0]?.accepted;
  assert.ok(process.hrtime.bigint() - started < 2_000_000_000n, 'a quadratic parser would need many seconds');
  assert.equal(accepted?.reason, 'InvalidAnnotation');
  assert.ok(accepted.message.length < 300);
});

test('rejects a pod with an address of a node, in any notation and from any source', () => {
  const edge = node('n1', '2001:DB8:0:0::1', { annotations: { 'weir.dev/addresses': '192.0.2.80' } });
  const addresses = ['2001:db8::1', '192.0.2.80', '10.0.0.9'];
  const { table } = translate(
    snapshotOf({
      settings: { ...snapshotOf({}).settings, trust: { kind: 'pods', serviceCidrs: [] } },
      nodes: [edge],
      services: [service('a/web')],
      slices: [slice('a/web', addresses)],
      pods: addresses.map((ip, index) => pod(`a/liar-${index}`, ip)),
    }),
    NO_ALLOCATIONS,
  );
  const used = entriesOf(table, 'endpoints').flatMap(({ endpoints }) => endpoints.map(({ address }) => address));
  assert.deepEqual(used, ['10.0.0.9']);
});
