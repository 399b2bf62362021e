// Checks that extreme objects, which an API server accepts, harm at most their own tenant.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesOf, NO_ALLOCATIONS, Translator, UNRESTRICTED_GRANTS } from '@weir/model';
import { namespace, node, policy, port, service, snapshotOf, team } from '../fixtures/snapshot.ts';
import { messageOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const POOLS = Array.from({ length: 50 }, (_, i) => `p${String(i).padStart(2, '0')}`);

test('moves fifty Services that wait for the pool of the next when the last pool becomes free', () => {
  const nodes = POOLS.map((pool, i) =>
    node(`n-${pool}`, `192.0.2.${i + 1}`, { labels: { role: 'loadbalancer', 'weir.dev/pool': pool } }),
  );
  const policies = [policy('all', { grants: { ...UNRESTRICTED_GRANTS, pools: POOLS, nodesPerService: 1 } })];
  const wanting = (shift: number) =>
    POOLS.map((pool, i) =>
      // Each Service waits for the pool of the next Service, and Services are considered by name. So only one Service can move in each
      // round.
      service(`shop/s-${pool}`, { annotations: { 'weir.dev/pool': POOLS[i + shift] ?? pool } }),
    );
  const world = { nodes, policies };
  const translator = new Translator(snapshotOf({}).settings, NO_ALLOCATIONS);
  translator.translate(snapshotOf({ ...world, services: wanting(0) }));
  translator.translate(snapshotOf({ ...world, services: wanting(1) }));
  const { table } = translator.translate(snapshotOf({ ...world, services: wanting(1).slice(0, -1) }));
  const placed = entriesOf(table, 'service').map(({ name, nodes: on }) => `${name} ${on}`);
  assert.deepEqual(
    placed.sort(),
    POOLS.slice(0, -1).map((pool, i) => `s-${pool} n-${POOLS[i + 1]}`),
  );
});

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

test('shortens the message about 10,000 invalid annotations to a kilobyte with a count', () => {
  const annotations = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`weir.dev/k${i}`, '']));
  const wrong = translateFresh({ services: [service('a/web', { annotations }), service('b/ok')] });
  assert.equal(reasonOf(wrong, 'a/web'), 'InvalidAnnotation');
  assert.match(messageOf(wrong, 'a/web'), /^annotation weir\.dev\/k0 .* and 999\d more$/);
  assert.ok(bytesOf(statusOf(wrong, 'a/web')) < 4_096);
  assert.ok(bytesOf(wrong.problems) < 8_192);
  assert.equal(reasonOf(wrong, 'b/ok'), 'Accepted');
});

test('shortens the long name of an annotation in messages', () => {
  const annotations = { [`weir.dev/${'k'.repeat(200_000)}`]: 'x' };
  const wrong = translateFresh({ services: [service('a/web', { annotations })] });
  assert.match(messageOf(wrong, 'a/web'), /^annotation weir\.dev\/k+… cannot be honoured/);
});

test('counts thousands of invalid source ranges and refused ports instead of listing them', () => {
  const ports = Array.from({ length: 3_000 }, (_, i) => port(20_000 + i, { name: `p${i}` }));
  const allowed = policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedPorts: [{ from: 80, to: 80 }] } });
  const before = { policies: [allowed], services: [service('a/web'), service('b/web', { ports: [port(81)] })] };
  const sourceRanges = Array.from({ length: 10_000 }, (_, i) => `bad${i}`);
  const after = translateAfter(translateFresh(before), {
    policies: [allowed],
    services: [service('a/web', { ports: [port(80, { name: 'http' }), ...ports] }), service('b/web', { sourceRanges })],
  });
  assert.match(messageOf(after, 'a/web'), / and \d+ more; the other ports are served$/);
  assert.match(messageOf(after, 'b/web'), / and \d+ more$/);
  for (const path of ['a/web', 'b/web']) assert.ok(Buffer.byteLength(messageOf(after, path)) <= 1_024);
});

test('never names a Service whose tenant is disputed to the tenant that owns the name', () => {
  const yields = (name: string, priority: number, limits = {}) =>
    policy(name, { namespaceSelector: team(name), tenantFrom: { kind: 'name', name: 'gold' }, priority, limits });
  const namespaces = [namespace('a', { team: 'a' }), namespace('b', { team: 'b' })];
  const before = translateFresh({ namespaces, policies: [yields('b', 1)], services: [service('b/secret')] });
  const services = [
    service('b/secret'),
    service('a/web', { ports: [port(81)], createdAt: 1 }),
    service('a/api', { ports: [port(82)], createdAt: 2 }),
  ];
  const policies = [yields('b', 1), yields('a', 2, { services: 1 })];
  const after = translateAfter(before, { namespaces, policies, services });
  assert.equal(reasonOf(after, 'b/secret'), 'TenantConflict');
  assert.equal(reasonOf(after, 'a/web'), 'Accepted');
  assert.match(messageOf(after, 'a/api'), /^1 of 1 load balancers of tenant "gold" are in use \(web\); delete one/);
});

test('keeps a Service whose tenant is disputed on its node, and adds no other node', () => {
  const one = { grants: { ...UNRESTRICTED_GRANTS, nodesPerService: 1 } };
  const yields = (name: string, priority: number, more = {}) =>
    policy(name, { namespaceSelector: team(name), tenantFrom: { kind: 'name', name: 'gold' }, priority, ...more });
  const world = {
    nodes: [node('n1', '192.0.2.1'), node('n2', '192.0.2.2'), node('n3', '192.0.2.3')],
    namespaces: [namespace('a', { team: 'a' }), namespace('b', { team: 'b' })],
    services: [service('b/web')],
  };
  const before = translateFresh({ ...world, policies: [yields('b', 1, one)] });
  const after = translateAfter(before, { ...world, policies: [yields('b', 1, one), yields('a', 2)] });
  assert.equal(reasonOf(after, 'b/web'), 'TenantConflict');
  assert.deepEqual(statusOf(after, 'b/web').nodes, statusOf(before, 'b/web').nodes);
});

test('does not replace an accepted Service without a node by a refused Service with a published address', () => {
  const policies = [policy('all', { limits: { services: 1 } })];
  const old = service('shop/old', { publishedIPs: ['192.0.2.1'], ports: [port(81)] });
  const namespaces = [namespace('shop')];
  const one = translateFresh({ policies, namespaces, nodes: [], services: [service('shop/web')] });
  const two = translateAfter(one, { policies, namespaces, nodes: [], services: [service('shop/web'), old] });
  assert.equal(reasonOf(two, 'shop/web'), 'Accepted');
  assert.equal(reasonOf(two, 'shop/old'), 'QuotaExceeded');
});
