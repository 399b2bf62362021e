import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  MAX_LISTED_NAMESPACES,
  type PolicyView,
  policyViewsFor,
  type Snapshot,
  type TenantPolicyObject,
  type TenantPolicySpec,
} from '@weir/model';
import { namespace, policy, service, snapshotOf, team } from '../fixtures/snapshot.ts';

const viewsOf = (parts: Partial<Snapshot>): PolicyView[] => policyViewsFor(snapshotOf(parts));

function viewOf(name: string, parts: Partial<Snapshot>): PolicyView {
  return viewsOf(parts).find((view) => view.name === name) ?? assert.fail(`no view of ${name}`);
}

const named = (name: string, tenant: string, more: Partial<TenantPolicySpec> = {}): TenantPolicyObject =>
  policy(name, { namespaceSelector: team(name), tenantFrom: { kind: 'name', name: tenant }, ...more });

describe('a TenantPolicy shows', () => {
  test('its precedence: by priority, then by name', () => {
    const policies = [policy('c', {}), policy('a', { priority: -1 }), policy('b', {}), policy('z', { priority: 7 })];
    assert.deepEqual(
      viewsOf({ policies }).map(({ name, precedence }) => `${precedence} ${name}`),
      ['1 z', '2 b', '3 c', '4 a'],
    );
  });

  test('its tenants with their namespaces', () => {
    const labelled = policy('teams', { tenantFrom: { kind: 'label', label: 'team' } });
    const namespaces = [
      namespace('shop-b', { team: 'shop' }),
      namespace('shop-a', { team: 'shop' }),
      namespace('game', { team: 'game' }),
    ];
    const view = viewOf('teams', { policies: [labelled], namespaces });
    assert.deepEqual([view.tenantCount, view.namespaceCount, view.refusedCount, view.overriddenCount], [2, 3, 0, 0]);
    assert.deepEqual(view.tenants, [
      { name: 'game', namespaces: ['game'] },
      { name: 'shop', namespaces: ['shop-a', 'shop-b'] },
    ]);
  });

  test('the selected namespaces of policies that take precedence', () => {
    const policies = [policy('all', {}), named('one', 'one', { priority: 1 }), named('two', 'two', { priority: 2 })];
    const namespaces = [namespace('x', { team: 'two' }), namespace('b', { team: 'one' }), namespace('rest')];
    const view = viewOf('all', { policies, namespaces: [...namespaces, namespace('a', { team: 'one' })] });
    assert.deepEqual([view.precedence, view.namespaceCount, view.overriddenCount], [3, 1, 3]);
    assert.deepEqual(view.overridden, [
      { policy: 'one', namespaces: ['a', 'b'] },
      { policy: 'two', namespaces: ['x'] },
    ]);
    assert.deepEqual(view.tenants, [{ name: 'rest', namespaces: ['rest'] }]);
  });

  test('the refused namespaces whose tenant name belongs to another policy', () => {
    const policies = [named('low', 'gold'), named('high', 'gold', { priority: 1 })];
    const namespaces = [namespace('a', { team: 'low' }), namespace('b', { team: 'high' })];
    const view = viewOf('low', { policies, namespaces });
    assert.deepEqual([view.tenantCount, view.namespaceCount, view.refusedCount], [0, 0, 1]);
    assert.deepEqual(view.conflicts, [{ tenant: 'gold', policy: 'high', namespaces: ['a'] }]);
    assert.deepEqual(viewOf('high', { policies, namespaces }).conflicts, []);
  });

  test('the namespaces without the label that names the tenant', () => {
    const policies = [policy('teams', { tenantFrom: { kind: 'label', label: 'team' } })];
    const namespaces = [namespace('none'), namespace('empty', { team: '' }), namespace('game', { team: 'game' })];
    const view = viewOf('teams', { policies, namespaces });
    assert.deepEqual([view.namespaceCount, view.refusedCount, view.unlabelled], [1, 2, ['empty', 'none']]);
    assert.deepEqual(view.conflicts, []);
  });

  test('a namespace that it selects by name', () => {
    const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'shop' }, matchExpressions: [] };
    const policies = [policy('shop', { namespaceSelector: selector })];
    const view = viewOf('shop', { policies, namespaces: [namespace('shop'), namespace('other')] });
    assert.deepEqual(view.tenants, [{ name: 'shop', namespaces: ['shop'] }]);
  });

  test('at most 500 namespaces by name, and counts all', () => {
    const many = MAX_LISTED_NAMESPACES + 100;
    const namespaces = Array.from({ length: many }, (_, i) => namespace(`n${i}`, { team: i < 200 ? 'one' : 'two' }));
    const whole = policy('whole', { priority: 1, tenantFrom: { kind: 'label', label: 'team' } });
    const [high, low] = viewsOf({ policies: [whole, policy('low', {})], namespaces });
    assert.deepEqual([high?.tenantCount, high?.namespaceCount], [2, many]);
    assert.deepEqual(
      high?.tenants.map((tenant) => [tenant.name, tenant.namespaces.length]),
      [
        ['one', 200],
        ['two', MAX_LISTED_NAMESPACES - 200],
      ],
    );
    assert.equal(low?.overriddenCount, many);
    assert.equal(low?.overridden[0]?.namespaces.length, MAX_LISTED_NAMESPACES);
  });

  test('no namespace that is known only from a Service', () => {
    const view = viewOf('all', { policies: [policy('all', {})], services: [service('shop/web')] });
    assert.deepEqual([view.tenantCount, view.namespaceCount, view.tenants], [0, 0, []]);
  });
});
