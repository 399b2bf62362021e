import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suspensionNameFor } from '../../src/suspensions/suspension-object.ts';

const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

test('names a Suspension by its target', () => {
  assert.equal(suspensionNameFor({ kind: 'tenant', tenant: 'shop' }), 'tenant.shop');
  assert.equal(suspensionNameFor({ kind: 'service', namespace: 'a-b', service: 'c' }), 'service.a-b.c');
});

test('gives the Services a-b/c and a/b-c different names', () => {
  const name = suspensionNameFor({ kind: 'service', namespace: 'a-b', service: 'c' });
  assert.notEqual(name, suspensionNameFor({ kind: 'service', namespace: 'a', service: 'b-c' }));
});

test('turns a tenant name that is a label value into a valid object name', () => {
  for (const tenant of ['Team_A', 'a..b', 'a.-b', `x${'y'.repeat(61)}Z`]) {
    assert.match(suspensionNameFor({ kind: 'tenant', tenant }), SUBDOMAIN);
  }
});

test('gives tenants that differ in disallowed characters only different names', () => {
  const names = ['Team-A', 'team-A', 'team_a', 'team-a'].map((tenant) => suspensionNameFor({ kind: 'tenant', tenant }));
  assert.equal(new Set(names).size, names.length);
});
