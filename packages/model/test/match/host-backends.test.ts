import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createMatcher,
  DEFAULT_SERVICE_SETTINGS,
  type Entry,
  endpointsId,
  type HttpRouteEntry,
  httpRouteId,
  type ListenerEntry,
  patchMatcher,
  serviceId,
  sharedListenerId,
  tableOf,
} from '@weir/model';
import { prefixMatch } from '../fixtures/http-routes.ts';

const BINDING = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port: 443, backendPort: 8080 } as const;
const HOST = 'shop.test';

function backend(uid: string): Entry[] {
  const binding: Omit<ListenerEntry, 'kind' | 'id'> = { ...BINDING, service: uid, shared: true };
  return [
    {
      kind: 'service',
      id: serviceId(uid),
      uid,
      namespace: 'shop',
      name: uid,
      tenant: 'shop',
      accepted: { reason: 'Accepted', message: '' },
      degraded: [],
      settings: { ...DEFAULT_SERVICE_SETTINGS, httpPorts: [8080] },
      ports: [],
      pool: 'default',
      nodes: ['n1'],
    },
    { kind: 'listener', id: sharedListenerId(binding), ...binding },
  ];
}

function routeTo(id: string, services: readonly string[]): HttpRouteEntry {
  const backends = services.map((service) => ({ service, port: 8080, weight: 1 }));
  const timeouts = { requestMs: null, backendRequestMs: null };
  const matches = [prefixMatch(`/${id}`)];
  const route = { id, tenant: 'shop', createdAt: 0, hosts: [HOST], matches, filters: [], backends, timeouts };
  return { kind: 'http-route', id: httpRouteId(id), ports: [443], route };
}

test('the backends of a host are collected once for all TLS handshakes, and again after a change of any of them', () => {
  const matcher = createMatcher(tableOf([...backend('a'), ...backend('b'), routeTo('r', ['a'])]), 'n1');
  const found = () => matcher.listeners.get('TCP/192.0.2.1/443')?.routesOf(HOST) ?? [];
  const services = () => found().map(({ service }) => service.uid);
  assert.deepEqual(services(), ['a']);
  assert.equal(found(), found());

  const endpoint = { address: '10.0.0.1', port: 80 };
  const port = { service: 'a', protocol: 'TCP', port: 8080 } as const;
  const endpoints: Entry = {
    kind: 'endpoints',
    id: endpointsId(port, 's', 0),
    ...port,
    endpoints: [endpoint],
    unready: 0,
  };
  patchMatcher(matcher, [{ kind: 'put', entry: endpoints }]);
  assert.deepEqual(found()[0]?.endpoints, [endpoint]);

  patchMatcher(matcher, [{ kind: 'put', entry: routeTo('q', ['b']) }]);
  assert.deepEqual(services(), ['a', 'b']);
  patchMatcher(matcher, [{ kind: 'delete', id: httpRouteId('r') }]);
  assert.deepEqual(services(), ['b']);
  patchMatcher(
    matcher,
    backend('b').map((entry) => ({ kind: 'delete', id: entry.id })),
  );
  assert.deepEqual(services(), []);
});
