import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  createMatcher,
  DEFAULT_SERVICE_SETTINGS,
  diff,
  EMPTY_TABLE,
  type Entry,
  entriesOf,
  type HttpRoute,
  type HttpRouteEntry,
  hostOwners,
  httpRouteId,
  type ListenerEntry,
  listenerId,
  type Matcher,
  patchMatcher,
  type RouteOfRequest,
  type RoutingTable,
  type ServiceEntry,
  serviceId,
  sharedListenerId,
  tableOf,
} from '@weir/model';
import fc from 'fast-check';
import { httpRequests, httpRoutes, naiveFind, type RandomRequest } from '../fixtures/arbitrary-http-routes.ts';
import { prefixMatch } from '../fixtures/http-routes.ts';

const UIDS = ['a', 'b', 'c', 'd'] as const;
/** The tenants of the Services. */
const TENANTS = { a: 'shop', b: 'shop', c: 'shop', d: 'other' } as const;
const BACKEND_PORTS = [8080, 8081];
const HOSTS = ['a.test', 'b.test', '*.test', 'c.a.test', '*.a.test'];
const BINDING = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port: 80 } as const;
const KEY = 'TCP/192.0.2.1/80';

const services = fc.tuple(
  ...UIDS.map((uid) =>
    fc.record({
      uid: fc.constant(uid),
      isServed: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
      isShared: fc.boolean(),
      hosts: fc.subarray(HOSTS, { maxLength: 2 }),
      pathPrefix: fc.constantFrom(undefined, '/a', '/a/b'),
      backendPorts: fc.subarray(BACKEND_PORTS),
    }),
  ),
);
/** Whether Service `a` has the listener exclusively, so that no HTTP route applies. */
const isExclusive = fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true));
const EXCLUSIVE: ListenerEntry = { kind: 'listener', id: listenerId(BINDING), ...BINDING, service: 'a' };
const backends = fc.uniqueArray(
  fc.record({ service: fc.constantFrom(...UIDS), port: fc.constantFrom(...BACKEND_PORTS), weight: fc.nat(2) }),
  { minLength: 1, maxLength: 3, selector: ({ service, port }) => `${service}/${port}` },
);
const entries = fc.uniqueArray(
  fc.record({ route: httpRoutes, backends, ports: fc.constantFrom([80], [80], [80, 81], [81]) }),
  { selector: ({ route }) => route.id, maxLength: 6 },
);

const tables: fc.Arbitrary<RoutingTable> = fc.record({ services, entries, isExclusive }).map((parts) => {
  if (parts.isExclusive)
    return tableOf([serviceEntry('a', ['a.test'], '/a'), EXCLUSIVE, ...entriesOfRoutes(parts.entries)]);
  // Translation gives a host to Services of one tenant only.
  const taken = new Set(parts.services.slice(0, -1).flatMap(({ hosts }) => hosts));
  const ofServices = parts.services.flatMap(({ uid, isServed, isShared, hosts, pathPrefix, backendPorts }): Entry[] => [
    ...(isServed
      ? [serviceEntry(uid, uid === 'd' ? hosts.filter((host) => !taken.has(host)) : hosts, pathPrefix)]
      : []),
    ...(isShared ? [listener({ ...BINDING, service: uid })] : []),
    ...backendPorts.map((backendPort) => listener({ ...BINDING, service: uid, backendPort })),
  ]);
  return tableOf([...ofServices, ...entriesOfRoutes(parts.entries)]);
});

type GeneratedRoute = Pick<HttpRouteEntry, 'route' | 'ports'> & Pick<HttpRoute, 'backends'>;

function entriesOfRoutes(routes: readonly GeneratedRoute[]): HttpRouteEntry[] {
  return routes.map(({ route, ports, backends: to }) => {
    return { kind: 'http-route', id: httpRouteId(route.id), ports, route: { ...route, backends: to } };
  });
}

function serviceEntry(uid: keyof typeof TENANTS, hosts: readonly string[], pathPrefix?: string): ServiceEntry {
  return {
    kind: 'service',
    id: serviceId(uid),
    uid,
    namespace: TENANTS[uid],
    name: uid,
    tenant: TENANTS[uid],
    accepted: { reason: 'Accepted', message: '' },
    degraded: [],
    settings: {
      ...DEFAULT_SERVICE_SETTINGS,
      httpPorts: [80, ...BACKEND_PORTS],
      hosts,
      ...(pathPrefix !== undefined && { pathPrefix }),
    },
    ports: [],
    pool: 'default',
    nodes: ['n1'],
  };
}

function listener(at: Omit<ListenerEntry, 'kind' | 'id' | 'shared'>): ListenerEntry {
  return { kind: 'listener', id: sharedListenerId(at), ...at, shared: true };
}

/** Returns all HTTP routes at the listener, from both sources. */
function routesAt(table: RoutingTable): HttpRoute[] {
  const isAlone = table.entries.has(EXCLUSIVE.id);
  const ofServices = servedListeners(table).flatMap(({ uid, own, settings }): HttpRoute[] => {
    if (!own || settings.hosts.length === 0) return [];
    return [
      {
        id: isAlone ? KEY : `${KEY}/${uid}`,
        tenant: TENANTS[uid],
        createdAt: 0,
        hosts: settings.hosts,
        matches: [prefixMatch(settings.pathPrefix ?? '/')],
        filters: [],
        backends: [{ service: uid, port: 80, weight: 1 }],
        timeouts: { requestMs: null, backendRequestMs: null },
      },
    ];
  });
  if (isAlone) return ofServices;
  const ofEntries = entriesOf(table, 'http-route')
    .filter(({ ports }) => ports.includes(80))
    .map(({ id, route }) => ({ ...route, id }));
  return [...ofServices, ...ofEntries];
}

function servedListeners(table: RoutingTable) {
  return entriesOf(table, 'service').flatMap(({ uid, settings }) => {
    const listeners = entriesOf(table, 'listener').filter(({ service }) => service === uid);
    if (settings === null) return [];
    const own = listeners.some(({ backendPort }) => backendPort === undefined);
    const ports = listeners.flatMap(({ backendPort }) => backendPort ?? []);
    return [{ uid: uid as keyof typeof TENANTS, settings, own, ports }];
  });
}

/** Returns the key of the route that gets the request: `none` if no route matches, `unusable` if the backend cannot be used. */
function naiveKey(table: RoutingTable, request: RandomRequest, random: number): string {
  const all = routesAt(table);
  const found = naiveFind(all, request);
  const route = all.find(({ id }) => id === found?.split(' ')[0]);
  if (route === undefined) return 'none';
  if (route.id.startsWith(KEY)) return route.id;
  const shares = route.backends.flatMap((backend) => Array<typeof backend>(backend.weight).fill(backend));
  const chosen = shares[Math.floor(random * shares.length)];
  const isUsable = servedListeners(table).some(
    ({ uid, ports }) => chosen?.service === uid && ports.includes(chosen.port) && TENANTS[uid] === route.tenant,
  );
  return isUsable ? `${KEY}/${chosen?.service}/${chosen?.port}` : 'unusable';
}

function findIn({ listeners }: Matcher, request: RandomRequest, random: number): RouteOfRequest | undefined {
  return listeners.get(KEY)?.findByRequest(request, () => random);
}

function keyIn(matcher: Matcher, request: RandomRequest, random: number): string {
  const found = findIn(matcher, request, random);
  return found === undefined ? 'none' : (found.route?.key ?? 'unusable');
}

const asked = fc.array(fc.record({ request: httpRequests, random: fc.constantFrom(0, 0.3, 0.5, 0.999) }), {
  maxLength: 12,
});

describe('HTTP routes of Services and of entries', () => {
  test('agree with a naive matcher, also in a patched matcher', () => {
    fc.assert(
      fc.property(fc.array(tables, { minLength: 1, maxLength: 4 }), asked, (history, requests) => {
        const patched = createMatcher(EMPTY_TABLE, 'n1');
        let before = EMPTY_TABLE;
        for (const table of history) {
          patchMatcher(patched, diff(before, table));
          const compiled = createMatcher(table, 'n1');
          const isOpen = compiled.listeners.has(KEY);
          for (const { request, random } of requests) {
            const expected = isOpen ? naiveKey(table, request, random) : 'none';
            assert.equal(keyIn(compiled, request, random), expected);
            assert.equal(keyIn(patched, request, random), expected);
            const owners = compiled.listeners
              .get(KEY)
              ?.routesOf(request.host)
              .map(({ key }) => key);
            assert.deepEqual(
              patched.listeners
                .get(KEY)
                ?.routesOf(request.host)
                .map(({ key }) => key),
              owners,
            );
          }
          before = table;
        }
        patchMatcher(patched, diff(before, EMPTY_TABLE));
        assert.equal(patched.listeners.size, 0);
      }),
      { numRuns: 1_000 },
    );
  });

  test('never lead from a host to another tenant than its owner, by request or by server name', () => {
    fc.assert(
      fc.property(tables, asked, (table, requests) => {
        const matcher = createMatcher(table, 'n1');
        const { tenants } = hostOwners(routesAt(table));
        for (const { request, random } of requests) {
          const owner = tenants.get(request.host) ?? tenants.get(request.host.replace(/^[^.]+/, '*'));
          const found = findIn(matcher, request, random);
          if (owner !== undefined && found !== undefined) assert.equal(found.match.route.tenant, owner);
          if (found?.route !== undefined) assert.equal(found.route.service.tenant, found.match.route.tenant);
          for (const { service } of matcher.listeners.get(KEY)?.routesOf(request.host) ?? [])
            assert.equal(service.tenant, owner);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('of one tenant change nothing for hosts that another tenant named first', () => {
    fc.assert(
      fc.property(tables, entries, asked, (table, added, requests) => {
        const mine = [...table.entries.values()].filter(
          (entry) => entry.kind !== 'http-route' || entry.route.tenant === 'shop',
        );
        const foreign = added.map(({ route, ports, backends: to }): HttpRouteEntry => {
          const id = `z${route.id}`;
          const younger = { ...route, id, tenant: 'other', createdAt: 10, backends: to };
          return { kind: 'http-route', id: httpRouteId(id), ports, route: younger };
        });
        const alone = createMatcher(tableOf(mine), 'n1');
        const together = createMatcher(tableOf([...mine, ...foreign]), 'n1');
        const { tenants } = hostOwners(routesAt(tableOf(mine)));
        for (const { request, random } of requests)
          if (tenants.get(request.host) === 'shop')
            assert.equal(keyIn(together, request, random), keyIn(alone, request, random));
      }),
      { numRuns: 1_000 },
    );
  });
});
