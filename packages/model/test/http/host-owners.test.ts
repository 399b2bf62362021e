import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostOwners } from '@weir/model';
import { httpRoute } from '../fixtures/http-routes.ts';

test('the oldest route decides which tenant owns a host, and the other tenants have conflicts', () => {
  const first = httpRoute('first', { tenant: 'shop', createdAt: 1, hosts: ['a.test'] });
  const second = httpRoute('second', { tenant: 'blog', createdAt: 2, hosts: ['a.test', 'b.test'] });
  const third = httpRoute('third', { tenant: 'shop', createdAt: 3, hosts: ['b.test', 'a.test'] });
  for (const routes of [
    [first, second, third],
    [third, second, first],
  ]) {
    const { tenants, conflicts } = hostOwners(routes);
    assert.deepEqual(Object.fromEntries(tenants), { 'a.test': 'shop', 'b.test': 'blog' });
    assert.deepEqual(conflicts, [
      { host: 'a.test', route: second, owner: first },
      { host: 'b.test', route: third, owner: second },
    ]);
  }
});

test('of equally old routes, the id that sorts first decides', () => {
  const routes = ['b', 'a'].map((id) => httpRoute(id, { tenant: id, hosts: ['a.test'] }));
  assert.deepEqual(Object.fromEntries(hostOwners(routes).tenants), { 'a.test': 'a' });
});

test('a host and a wildcard that matches the host do not conflict', () => {
  const routes = [
    httpRoute('a', { tenant: 'shop', hosts: ['*.test'] }),
    httpRoute('b', { tenant: 'blog', createdAt: 1, hosts: ['a.test', '*.a.test'] }),
  ];
  const { tenants, conflicts } = hostOwners(routes);
  assert.deepEqual(Object.fromEntries(tenants), { '*.a.test': 'blog', '*.test': 'shop', 'a.test': 'blog' });
  assert.deepEqual(conflicts, []);
});

test('routes of one tenant and routes without hosts have no conflicts', () => {
  const routes = [
    httpRoute('a', { hosts: ['a.test'] }),
    httpRoute('b', { hosts: ['a.test'] }),
    httpRoute('c'),
    httpRoute('d', { tenant: 'blog' }),
  ];
  assert.deepEqual(hostOwners(routes).conflicts, []);
});
