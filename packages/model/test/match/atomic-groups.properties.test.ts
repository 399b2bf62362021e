import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import {
  atomicGroupsFor,
  createMatcher,
  DEFAULT_SERVICE_SETTINGS,
  diff,
  EMPTY_TABLE,
  type Entry,
  endpointsId,
  httpRouteId,
  listenerId,
  type Matcher,
  movedResources,
  nodeId,
  patchMatcher,
  type Route,
  type RoutingTable,
  type ServiceSettings,
  serviceId,
  sharedListenerId,
  tableOf,
} from '@weir/model';
import fc from 'fast-check';
import { httpRoute, prefixMatch } from '../fixtures/http-routes.ts';

const UIDS = ['a', 'b', 'c', 'd'] as const;
const PORTS = [1, 2, 3, 4];
const SHARED = 5;
const SHARED_BINDING = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port: SHARED } as const;
const HOSTS = ['x.example', 'y.example', '*.example', 'z.test'];
/** Server names that the test looks up. No Service has a host that matches `other.test`. */
const NAMES = ['x.example', 'y.example', 'w.example', 'z.test', 'other.test'];
const PREFIXES = [undefined, '/a', '/a/b'];
const PATHS = ['/', '/a', '/a/b/c'];

/**
 * Random tables. From one table to the next, listeners pass between Services, and Services are added, removed, refused, or get other
 * endpoints.
 */
const tables: fc.Arbitrary<RoutingTable> = fc
  .record({
    zone: fc.constantFrom(null, 'z'),
    services: fc.tuple(
      ...UIDS.map(() =>
        fc.record({
          state: fc.nat(3),
          endpoints: fc.array(fc.nat(2)),
          hosts: fc.subarray(HOSTS),
          prefix: fc.constantFrom(...PREFIXES),
        }),
      ),
    ),
    exclusiveOwners: fc.tuple(...PORTS.map(() => fc.option(fc.constantFrom(...UIDS)))),
    sharers: fc.subarray([...UIDS]),
    /** The Services that are backends of HTTP routes. */
    backends: fc.subarray([...UIDS]),
    httpRoutes: fc.uniqueArray(
      fc.record({
        id: fc.constantFrom('r1', 'r2'),
        createdAt: fc.nat(1),
        hosts: fc.subarray(HOSTS, { maxLength: 2 }),
        prefix: fc.constantFrom('/', '/a'),
        services: fc.subarray([...UIDS], { minLength: 1, maxLength: 2 }),
      }),
      { selector: ({ id }) => id },
    ),
    /** The exclusive owner of `SHARED_BINDING`; null if Services may share the binding. */
    exclusiveOwner: fc.option(fc.constantFrom(...UIDS), { freq: 3 }),
  })
  .map(({ zone, services, exclusiveOwners, sharers, backends, httpRoutes, exclusiveOwner }) => {
    /** The host and prefix of each Service so far. */
    const owned = new Set<string>();
    const entries: Entry[] = [
      { kind: 'node', id: nodeId('n1'), name: 'n1', bindAddresses: [], publishedAddresses: [], zone, pool: 'default' },
    ];
    UIDS.forEach((uid, index) => {
      const { state = 0, endpoints = [], hosts = [], prefix } = services[index] ?? {};
      const free = hosts.filter((host) => !owned.has(`${host}${prefix}`));
      if (state > 1) for (const host of free) owned.add(`${host}${prefix}`);
      if (state > 0) entries.push(serviceEntry(uid, state, { hosts: free, ...(prefix && { pathPrefix: prefix }) }));
      for (const port of [...PORTS, SHARED]) entries.push(...endpointsEntries(uid, port, endpoints));
    });
    PORTS.forEach((port, index) => {
      const service = exclusiveOwners[index];
      const at = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port } as const;
      if (service) entries.push({ kind: 'listener', id: listenerId(at), ...at, service });
    });
    if (exclusiveOwner !== null)
      entries.push({ kind: 'listener', id: listenerId(SHARED_BINDING), ...SHARED_BINDING, service: exclusiveOwner });
    for (const service of exclusiveOwner === null ? sharers : []) {
      const at = { ...SHARED_BINDING, service };
      entries.push({ kind: 'listener', id: sharedListenerId(at), ...at, shared: true });
    }
    for (const service of exclusiveOwner === null ? backends : []) {
      const at = { ...SHARED_BINDING, service, backendPort: PORTS[0] as number };
      entries.push({ kind: 'listener', id: sharedListenerId(at), ...at, shared: true });
    }
    for (const { id, createdAt, hosts, prefix, services: uids } of httpRoutes) {
      // As a translator does: only Services that are backends get requests.
      const used = uids.filter((uid) => backends.includes(uid));
      if (used.length === 0) continue;
      const route = httpRoute(id, {
        createdAt,
        hosts,
        matches: [prefixMatch(prefix)],
        backends: used.map((service) => ({ service, port: PORTS[0] as number, weight: 1 })),
      });
      entries.push({ kind: 'http-route', id: httpRouteId(id), ports: [SHARED], route });
    }
    return tableOf(entries);
  });

test('atomic groups lead to the same routes as all changes at once, and each group leaves either the old or the new route and owner of every name and path', () => {
  fc.assert(
    fc.property(fc.array(tables, { minLength: 2, maxLength: 4 }), (history) => {
      const stepped = createMatcher(EMPTY_TABLE, 'n1');
      let before = EMPTY_TABLE;
      for (const table of history) {
        const ends = [createMatcher(before, 'n1'), createMatcher(table, 'n1')];
        const changes = diff(before, table);
        for (const group of atomicGroupsFor(changes, movedResources(stepped, changes))) {
          patchMatcher(stepped, group.changes);
          for (const key of new Set(ends.flatMap(({ routes }) => [...routes.keys()]))) {
            const now = told(stepped.routes.get(key));
            assert.ok(
              ends.some(({ routes }) => isDeepStrictEqual(told(routes.get(key)), now)),
              `${key} after a group of ${group.services.join()}`,
            );
          }
          for (const name of NAMES) {
            const now = ownerOf(stepped, name);
            assert.ok(
              ends.some((end) => ownerOf(end, name) === now),
              `${name} is of ${now} after a group of ${group.services.join()}`,
            );
            for (const path of PATHS) {
              const gets = pathOwnerOf(stepped, name, path);
              assert.ok(
                ends.some((end) => pathOwnerOf(end, name, path) === gets),
                `${name}${path} is of ${gets} after a group of ${group.services.join()}`,
              );
            }
          }
        }
        assert.deepEqual(routesOf(stepped), routesOf(createMatcher(table, 'n1')));
        before = table;
      }
    }),
    { numRuns: 500 },
  );
});

/**
 * Returns the route without its compiled source check, and without the zone of the node, because the zone changes for all listeners at
 * once.
 */
function told(route: Route | undefined): Partial<Route> | undefined {
  if (route === undefined) return undefined;
  const { allowsSource: _compiled, zone: _ofTheNode, ...rest } = route;
  return rest;
}

const routesOf = ({ routes }: Matcher): unknown[] =>
  [...routes.values()].map(({ allowsSource: _compiled, ...route }) => route).sort((a, b) => (a.key < b.key ? -1 : 1));

/** Returns the UID of the Service that gets a client with this server name on the shared port. */
function ownerOf({ listeners }: Matcher, name: string): string | undefined {
  const listener = [...listeners.values()].find(({ listener }) => listener.port === SHARED);
  return (listener?.isShared === true ? listener.findByServerName(name) : listener?.exclusive)?.service.uid;
}

/** Returns the UID of the Service that gets a request for this host and path on the shared port. */
function pathOwnerOf({ listeners }: Matcher, host: string, path: string): string | undefined {
  const listener = [...listeners.values()].find(({ listener }) => listener.port === SHARED);
  const request = { method: 'GET', host, path, query: '', header: () => undefined };
  return (listener?.isShared === true ? listener.findByRequest(request, () => 0)?.route : listener?.exclusive)?.service
    .uid;
}

/**
 * Returns the entry of a refused Service if `state` is 1. Other values give the entry of a served Service, with `state` as part of its
 * name.
 */
function serviceEntry(uid: string, state: number, own: Partial<ServiceSettings>): Entry {
  return {
    kind: 'service',
    id: serviceId(uid),
    uid,
    namespace: 'shop',
    name: `${uid}-${state}`,
    tenant: 'shop',
    accepted: { reason: 'Accepted', message: '' },
    degraded: [],
    settings: state === 1 ? null : { ...DEFAULT_SERVICE_SETTINGS, httpPorts: [SHARED, PORTS[0] as number], ...own },
    ports: [],
    pool: 'default',
    nodes: ['n1'],
  };
}

function endpointsEntries(uid: string, port: number, hosts: readonly number[]): Entry[] {
  const of = { service: uid, protocol: 'TCP', port } as const;
  return [...new Set(hosts)].map((host, chunk) => ({
    kind: 'endpoints',
    id: endpointsId(of, 's', chunk),
    ...of,
    endpoints: [{ address: `10.0.0.${host}`, port: 80 }],
    unready: 0,
  }));
}
