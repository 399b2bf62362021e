import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  apply,
  diff,
  EMPTY_TABLE,
  type Entry,
  httpRouteId,
  type RoutingTable,
  type TenantLimits,
  tableOf,
} from '@weir/model';
import fc from 'fast-check';
import { NodeTable } from '../../../src/supervisor/table/node-table.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const NODES = { a: '127.0.0.1', b: '127.0.0.2' };

/** Gives generated objects a prototype, because entries decoded from JSON have a prototype too. */
const PLAIN = { noNullPrototype: true } as const;

const service: fc.Arbitrary<TestService> = fc.record({
  name: fc.constantFrom('s1', 's2', 's3'),
  namespace: fc.constant('shop'),
  tenant: fc.constantFrom('red', 'blue', null),
  port: fc.constantFrom(80, 81, 82),
  endpoints: fc.array(
    fc.record({ address: fc.constantFrom('10.0.0.1', '10.0.0.2'), port: fc.constantFrom(1, 2) }, PLAIN),
    {
      maxLength: 2,
    },
  ),
  nodes: fc.subarray(['a', 'b']),
  otherCertificates: fc.array(
    fc.record(
      {
        chain: fc.constantFrom('c1', 'c2'),
        keyDigest: fc.constant('d'),
        notAfter: fc.constant(0),
        clientAuthorities: fc.constant(null),
      },
      PLAIN,
    ),
    { maxLength: 3 },
  ),
});
/** An HTTP route to Services of which some may not exist, or may not be on node a. */
const httpRoute: fc.Arbitrary<Entry> = fc
  .record({
    id: fc.constantFrom('shop/r/1', 'shop/r/2'),
    createdAt: fc.nat(1),
    services: fc.subarray(['s1', 's2', 's3'], { minLength: 1 }),
  })
  .map(({ id, createdAt, services }) => ({
    kind: 'http-route',
    id: httpRouteId(id),
    ports: [80],
    route: {
      id,
      tenant: 'red',
      createdAt,
      hosts: [],
      matches: [],
      filters: [],
      backends: services.map((name) => ({ service: `uid-shop-${name}`, port: 80, weight: 1 })),
      timeouts: { requestMs: null, backendRequestMs: null },
    },
  }));
/** Random tables. A port may belong to different Services in two successive tables. */
const table: fc.Arbitrary<RoutingTable> = fc
  .record({
    services: fc.uniqueArray(service, { selector: ({ port }) => port }),
    limits: fc.constantFrom<TenantLimits>({}, { connections: 1 }),
    httpRoutes: fc.uniqueArray(httpRoute, { selector: ({ id }) => id }),
  })
  .map(({ services, limits, httpRoutes }) => {
    const unique = [...new Map(services.map((each) => [each.name, each])).values()];
    return tableOf([...tableFor(NODES, unique, { red: limits }).entries.values(), ...httpRoutes]);
  });

test('equals the part of the complete table after any changes, and returns the changes that lead there', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ table, isComplete: fc.boolean() }), { maxLength: 6 }), (steps) => {
      const node = new NodeTable('a');
      let known: RoutingTable = EMPTY_TABLE;
      let applied: RoutingTable = EMPTY_TABLE;
      for (const { table: next, isComplete } of steps) {
        const changes = diff(known, next);
        applied = apply(applied, isComplete ? node.replace(next) : node.patch(changes, next));
        known = next;
        assert.deepEqual(contentOf(applied), partOf(next));
        assert.deepEqual(contentOf(node.part), partOf(next));
      }
    }),
  );
});

/**
 * Returns the entries that node a needs. Computes them from the complete table, without the incremental state of
 * `NodeTable`.
 */
function partOf(complete: RoutingTable): Record<string, Entry> {
  const entries = [...complete.entries.values()];
  const served = new Set(
    entries.flatMap((each) => (each.kind === 'listener' && each.node === 'a' ? [each.service] : [])),
  );
  const tenants = new Set(
    entries.flatMap((each) => (each.kind === 'service' && served.has(each.uid) ? [each.tenant] : [])),
  );
  const isInPart = (each: Entry): boolean =>
    each.id === 'node/a' ||
    (each.kind === 'listener' && each.node === 'a') ||
    (each.kind === 'service' && served.has(each.uid)) ||
    (each.kind === 'http-route' && each.route.backends.some((backend) => served.has(backend.service))) ||
    ((each.kind === 'endpoints' || each.kind === 'certificate') && served.has(each.service)) ||
    (each.kind === 'tenant' && tenants.has(each.name));
  return contentOf({ entries: new Map(entries.filter(isInPart).map((each) => [each.id, each])) });
}

function contentOf({ entries }: RoutingTable): Record<string, Entry> {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}
