import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRouter, decodeEntry, encodeEntry, findRoute, httpRouteOf, type Route } from '@weir/model';
import { routeOf } from '../fixtures/balance.ts';

const serviceRoute = (...parameters: Parameters<typeof routeOf>): Route => routeOf(...parameters) as Route;

test('the HTTP route of a Service without path prefix gets all paths of its hosts', () => {
  const route = serviceRoute({ hosts: ['shop.test'] });
  assert.deepEqual(httpRouteOf(route), {
    id: route.key,
    tenant: 'shop',
    createdAt: 0,
    hosts: ['shop.test'],
    matches: [{ path: { kind: 'prefix', value: '/' }, method: null, headers: [], query: [] }],
    filters: [],
    backends: [{ service: 'uid', port: 80, weight: 1 }],
    timeouts: { requestMs: null, backendRequestMs: null },
  });
});

test('the HTTP route of a Service with strip-prefix removes the path prefix', () => {
  const { matches, filters } = httpRouteOf(serviceRoute({ pathPrefix: '/api', stripPrefix: true }));
  assert.deepEqual(matches, [{ path: { kind: 'prefix', value: '/api' }, method: null, headers: [], query: [] }]);
  assert.deepEqual(filters, [{ kind: 'rewrite', host: null, path: { kind: 'prefix', value: '/' } }]);
});

test('the longest path prefix of the Services of a host gets the request', () => {
  const hosts = ['shop.test'];
  const routes = [
    httpRouteOf(serviceRoute({ hosts }, { uid: 'shop' })),
    { ...httpRouteOf(serviceRoute({ hosts, pathPrefix: '/api' }, { uid: 'api' })), id: 'api' },
  ];
  const router = compileRouter(routes);
  const backendOf = (path: string): string | undefined =>
    findRoute(router, { method: 'GET', host: 'shop.test', path, query: '', header: () => undefined })?.route.backends[0]
      ?.service;
  assert.equal(backendOf('/'), 'shop');
  assert.equal(backendOf('/apis'), 'shop');
  assert.equal(backendOf('/api'), 'api');
  assert.equal(backendOf('/api/v1'), 'api');
});

test('a Service with a path prefix has a schema version of its own and decodes unchanged', () => {
  const { service } = serviceRoute({ pathPrefix: '/api', stripPrefix: true });
  assert.deepEqual(decodeEntry(encodeEntry(service)), service);
  assert.equal(JSON.parse(encodeEntry(service)).v, 4);
  assert.equal(JSON.parse(encodeEntry(serviceRoute().service)).v, 1);
});
