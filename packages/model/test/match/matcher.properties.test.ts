import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allocationsFor,
  createMatcher,
  diff,
  EMPTY_TABLE,
  type Endpoint,
  entriesOf,
  type ListenerEntry,
  listenerId,
  listenerKey,
  type Matcher,
  NO_ALLOCATIONS,
  type Protocol,
  patchMatcher,
  type RoutingTable,
  routeRefusalFor,
  type Snapshot,
  Translator,
  translate,
} from '@weir/model';
import fc from 'fast-check';
import { histories as anyHistories, historySettings, nodeSets } from '../fixtures/arbitrary-history.ts';
import { snapshots } from '../fixtures/arbitrary-snapshot.ts';
import { isWithin } from '../fixtures/linear-networks.ts';
import { snapshotOf } from '../fixtures/snapshot.ts';

const histories = fc.array(snapshots, { minLength: 1, maxLength: 5 }).map(tablesOf);

function tablesOf(snapshots: readonly Snapshot[]): RoutingTable[] {
  const tables: RoutingTable[] = [];
  for (const snapshot of snapshots) {
    const before = tables.at(-1);
    tables.push(translate(snapshot, before === undefined ? NO_ALLOCATIONS : allocationsFor(before)).table);
  }
  return tables;
}

/** Histories of tables in which Services share a port. */
const sharing = anyHistories({ minLength: 1 }).map((history) => {
  const translator = new Translator(historySettings, NO_ALLOCATIONS);
  let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
  return history.map((step) => {
    snapshot = step(snapshot);
    return translator.translate(snapshot).table;
  });
});

const NAMES = ['x.shop.example', 'y.shop.example', 'z.shop.example', 'a.x.shop.example', 'other.example', 'nobody'];

const listenersOf = ({ listeners }: Matcher): unknown[] =>
  [...listeners]
    .map(([key, listener]) => ({
      key,
      alone: listener.exclusive?.key,
      isShared: listener.isShared,
      shares: [...listener.shared.keys()].sort(),
      names: NAMES.map((name) => listener.findByServerName(name)?.key),
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));

const routesOf = (matcher: ReturnType<typeof createMatcher>): unknown[] =>
  [...matcher.routes.values()]
    .map(({ allowsSource: _compiled, ...route }) => route)
    .sort((a, b) => (a.key < b.key ? -1 : 1));

test('a patched matcher equals a matcher that is compiled from the last table', () => {
  fc.assert(
    fc.property(fc.oneof(histories, sharing), fc.constantFrom('n1', 'n2'), (tables, node) => {
      const patched = createMatcher(EMPTY_TABLE, node);
      let before = EMPTY_TABLE;
      for (const table of tables) {
        const had = new Map(patched.routes);
        const changed = new Set(patchMatcher(patched, diff(before, table)));
        for (const [key, route] of had) assert.ok(changed.has(key) || patched.routes.get(key) === route, key);
        for (const key of patched.routes.keys()) assert.ok(changed.has(key) || had.has(key), key);
        before = table;
      }
      const compiled = createMatcher(before, node);
      assert.deepEqual(routesOf(patched), routesOf(compiled));
      assert.deepEqual(listenersOf(patched), listenersOf(compiled));
    }),
    { numRuns: 200 },
  );
});

test('the owner of a name on a shared listener agrees with a linear search', () => {
  fc.assert(
    fc.property(sharing, (tables) => {
      const table = tables.at(-1) ?? EMPTY_TABLE;
      for (const listener of createMatcher(table, 'n1').listeners.values()) {
        for (const name of NAMES)
          assert.equal(listener.findByServerName(name)?.service.uid, ownerOf(table, listener.listener, name), name);
      }
    }),
    { numRuns: 200 },
  );
});

function ownerOf(table: RoutingTable, at: ListenerEntry, name: string): string | undefined {
  // If Services share a host by path, the first by UID counts.
  const sharers = entriesOf(table, 'listener')
    .filter((entry) => entry.shared === true && entry.node === at.node && listenerKey(entry) === listenerKey(at))
    .sort((a, b) => (a.service < b.service ? -1 : 1));
  const owner = (host: string): string | undefined =>
    sharers.find(({ service: uid }) =>
      entriesOf(table, 'service').some((entry) => entry.uid === uid && entry.settings?.hosts.includes(host)),
    )?.service;
  return owner(name) ?? owner(`*.${name.split('.').slice(1).join('.')}`);
}

/** A connection from the client address `source` to the listener at `address` and `port`. */
interface Arrival {
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
  readonly source: string;
}

const arrivals: fc.Arbitrary<Arrival> = fc.record({
  protocol: fc.constantFrom('TCP', 'UDP'),
  address: fc.constantFrom('192.0.2.1', '192.0.2.2'),
  port: fc.constantFrom(22, 80, 81, 82),
  source: fc.constantFrom('10.1.1.1', '203.0.113.1', '::ffff:10.2.2.2', '2001:db8::1', 'nonsense'),
});

test('the matcher agrees with a linear search through the table', () => {
  fc.assert(
    fc.property(histories, fc.array(arrivals, { maxLength: 20 }), (tables, requests) => {
      const table = tables.at(-1) ?? EMPTY_TABLE;
      const matcher = createMatcher(table, 'n1');
      for (const arrival of requests) {
        const route = matcher.routes.get(listenerKey(arrival));
        const found = route && (routeRefusalFor(route, { address: arrival.source }) ?? route.endpoints);
        assert.deepEqual(found ?? 'no-listener', linearMatch(table, 'n1', arrival));
      }
    }),
  );
});

function linearMatch(table: RoutingTable, node: string, arrival: Arrival): readonly Endpoint[] | string {
  const listener = table.entries.get(listenerId({ node, ...arrival }));
  if (listener?.kind !== 'listener') return 'no-listener';
  const service = entriesOf(table, 'service').find(({ uid }) => uid === listener.service);
  const ranges = service?.settings?.sourceRanges ?? [];
  if (ranges.length > 0 && !isWithin(arrival.source, ranges)) return 'source-range';
  const endpoints = entriesOf(table, 'endpoints')
    .filter(
      (entry) =>
        entry.service === listener.service && entry.port === listener.port && entry.protocol === listener.protocol,
    )
    .flatMap((entry) => entry.endpoints)
    .sort((a, b) => ((a.zone ?? '') < (b.zone ?? '') ? 1 : -1));
  const unique = [
    ...new Map(endpoints.map((endpoint) => [`${endpoint.address}|${endpoint.port}`, endpoint])).entries(),
  ];
  return unique.length === 0
    ? 'no-endpoints'
    : unique.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
