import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suspensionNameFor } from '../../src/suspensions/suspension-object.ts';

const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

test('the name says what is cut off', () => {
  assert.equal(suspensionNameFor({ kind: 'tenant', tenant: 'shop' }), 'tenant.shop');
  assert.equal(suspensionNameFor({ kind: 'service', namespace: 'a-b', service: 'c' }), 'service.a-b.c');
});

test('a Service a-b/c and a Service a/b-c have different names', () => {
  const one = suspensionNameFor({ kind: 'service', namespace: 'a-b', service: 'c' });
  assert.notEqual(one, suspensionNameFor({ kind: 'service', namespace: 'a', service: 'b-c' }));
});

test('a tenant that is named by a label value gets a name that Kubernetes takes', () => {
  for (const tenant of ['Team_A', 'a..b', 'a.-b', `x${'y'.repeat(61)}Z`]) {
    assert.match(suspensionNameFor({ kind: 'tenant', tenant }), SUBDOMAIN);
  }
});

test('tenants that differ only in what a name may not hold stay apart', () => {
  const names = ['Team-A', 'team-A', 'team_a', 'team-a'].map((tenant) => suspensionNameFor({ kind: 'tenant', tenant }));
  assert.equal(new Set(names).size, names.length);
});
