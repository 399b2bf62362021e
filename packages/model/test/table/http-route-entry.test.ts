import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  apply,
  decodeEntry,
  diff,
  encodeEntry,
  type HttpRoute,
  type HttpRouteEntry,
  httpRouteId,
  sharedListenerId,
  tableOf,
  tableToJson,
} from '@weir/model';
import fc from 'fast-check';
import { httpRoutes } from '../fixtures/arbitrary-http-routes.ts';
import { exactMatch, httpRoute } from '../fixtures/http-routes.ts';

const entryFor = (route: HttpRoute, ports: readonly number[] = [80]): HttpRouteEntry => ({
  kind: 'http-route',
  id: httpRouteId(route.id),
  ports,
  route,
});

/** A route with every field that a route can have. */
const FULL: HttpRoute = httpRoute('shop/web/003', {
  createdAt: 1_700_000_000_000,
  hosts: ['shop.example', '*.shop.example'],
  matches: [
    exactMatch('/a', {
      method: 'GET',
      headers: [{ kind: 'present', name: 'x-beta' }],
      query: [{ kind: 'exact', name: 'v', value: '2' }],
    }),
  ],
  filters: [
    { kind: 'request-headers', set: [{ name: 'x-a', value: '1' }], add: [], remove: ['x-b'] },
    { kind: 'response-headers', set: [], add: [{ name: 'x-c', value: '2' }], remove: [] },
    { kind: 'rewrite', host: 'inner.example', path: { kind: 'full', value: '/b' } },
  ],
  backends: [
    { service: 'web', port: 8080, weight: 9 },
    { service: 'canary', port: 80, weight: 0 },
  ],
  timeouts: { requestMs: 2_000, backendRequestMs: 1_000 },
});
const REDIRECT = { kind: 'redirect', scheme: 'https', host: null, port: 8443, path: null, status: 301 } as const;

test('an HTTP route survives encoding, and proxies that do not know HTTP routes skip it', () => {
  for (const route of [FULL, httpRoute('a/b/000', { filters: [REDIRECT] })]) {
    const entry = entryFor(route, [80, 443]);
    assert.equal(JSON.parse(encodeEntry(entry)).v, 7);
    assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
  }
});

test('proxies that do not know HTTP routes skip the listeners of backends', () => {
  const at = { node: 'n1', address: '192.0.2.1', port: 80, protocol: 'TCP', service: 'web' } as const;
  const listener = { ...at, backendPort: 8080, shared: true } as const;
  const entry = { kind: 'listener', id: sharedListenerId(listener), ...listener } as const;
  assert.equal(entry.id, 'listener/n1/192.0.2.1/TCP/80/web/8080');
  assert.equal(JSON.parse(encodeEntry(entry)).v, 7);
  assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
});

const DAMAGED: readonly (readonly [what: string, change: object])[] = [
  ['a port that is a text', { ports: ['80'] }],
  ['no route', { route: undefined }],
  ['a route without a tenant', { route: { ...FULL, tenant: null } }],
  [
    'an unknown kind of path',
    { route: { ...FULL, matches: [{ ...FULL.matches[0], path: { kind: 'regex', value: '/' } }] } },
  ],
  ['an unknown kind of filter', { route: { ...FULL, filters: [{ kind: 'mirror' }] } }],
  ['a filter without its lists', { route: { ...FULL, filters: [{ kind: 'request-headers', set: [] }] } }],
  ['a redirect with another status', { route: { ...FULL, filters: [{ ...REDIRECT, status: 200 }] } }],
  [
    'a filter that changes the framing',
    {
      route: { ...FULL, filters: [{ kind: 'request-headers', set: [], add: [], remove: ['content-length'] }] },
    },
  ],
  ['a host in upper case', { route: { ...FULL, hosts: ['Shop.example'] } }],
  ['a negative weight', { route: { ...FULL, backends: [{ service: 'web', port: 80, weight: -1 }] } }],
  ['no backends', { route: { ...FULL, backends: [] } }],
  ['a timeout of no time', { route: { ...FULL, timeouts: { requestMs: 0, backendRequestMs: null } } }],
  ['an unknown schema version', { v: 8 }],
  ['an unknown kind', { kind: 'tcp-route' }],
];

for (const [what, change] of DAMAGED) {
  test(`does not decode an HTTP route with ${what}`, () => {
    const text = JSON.stringify({ ...JSON.parse(encodeEntry(entryFor(FULL))), ...change });
    assert.equal(decodeEntry(text), undefined);
  });
}

test('diff finds the changes of HTTP routes, and apply makes them', () => {
  const tables = fc
    .uniqueArray(httpRoutes, { selector: ({ id }) => id, maxLength: 6 })
    .map((routes) => tableOf(routes.map((route) => entryFor(structuredClone(route)))));
  fc.assert(
    fc.property(tables, tables, (before, after) => {
      const decoded = diff(before, after).map((change) => {
        if (change.kind === 'delete') return change;
        const entry = decodeEntry(encodeEntry(change.entry));
        assert.ok(entry, 'the random routes are valid');
        return { kind: 'put', entry } as const;
      });
      const { entries } = apply(before, decoded);
      assert.deepEqual(new Map([...entries].sort()), new Map([...after.entries].sort()));
    }),
  );
});

test('the table as JSON lists HTTP routes only if there are some', () => {
  assert.equal('httpRoutes' in tableToJson(tableOf([])), false);
  const { httpRoutes: listed } = tableToJson(tableOf([entryFor(FULL), entryFor(httpRoute('a/b/000'))]));
  assert.deepEqual(
    listed?.map(({ id }) => id),
    ['http-route/a/b/000', 'http-route/shop/web/003'],
  );
});
