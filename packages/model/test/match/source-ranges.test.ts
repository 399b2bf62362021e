import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createMatcher,
  decodeEntry,
  type Entry,
  encodeEntry,
  type Matcher,
  NO_ALLOCATIONS,
  patchMatcher,
  type Route,
  type RoutingTable,
  type ServiceEntry,
  translate,
} from '@weir/model';
import { port, service, snapshotOf } from '../fixtures/snapshot.ts';

const PORTS = [port(80), port(81), port(82)];

function tableOf(sourceRanges: readonly string[]): RoutingTable {
  return translate(snapshotOf({ services: [service('shop/web', { ports: PORTS, sourceRanges })] }), NO_ALLOCATIONS)
    .table;
}

function entryOf<K extends Entry['kind']>(table: RoutingTable, kind: K): Extract<Entry, { kind: K }> {
  const entry = [...table.entries.values()].find((each) => each.kind === kind);
  assert.ok(entry);
  return entry as Extract<Entry, { kind: K }>;
}

/** Applies an entry as a proxy does: encoded and decoded, so that the entry shares no object with former entries. */
function put(matcher: Matcher, entry: Entry): void {
  const read = decodeEntry(encodeEntry(entry));
  assert.ok(read);
  patchMatcher(matcher, [{ kind: 'put', entry: read }]);
}

const withRanges = (entry: ServiceEntry, sourceRanges: readonly string[]): ServiceEntry => {
  assert.ok(entry.settings);
  return { ...entry, settings: { ...entry.settings, sourceRanges } };
};

const sourceChecks = (matcher: Matcher): Route['allowsSource'][] =>
  [...matcher.routes.values()].map(({ allowsSource }) => allowsSource);
const admitted = (matcher: Matcher, address: string): boolean[] =>
  sourceChecks(matcher).map((admits) => admits({ address }));

test('compiles source ranges once for all ports of a Service, whatever else changes', () => {
  const table = tableOf(['10.0.0.0/8']);
  const matcher = createMatcher(table, 'n1');
  const [first] = sourceChecks(matcher);
  assert.deepEqual(sourceChecks(matcher), [first, first, first]);
  put(matcher, { ...entryOf(table, 'node'), zone: 'eu-1a' });
  assert.deepEqual(
    [...matcher.routes.values()].map(({ zone }) => zone),
    ['eu-1a', 'eu-1a', 'eu-1a'],
  );
  assert.deepEqual(sourceChecks(matcher), [first, first, first]);
  put(matcher, { ...entryOf(table, 'service'), degraded: [{ reason: 'FewerNodes', message: 'one' }] });
  assert.deepEqual(
    [...matcher.routes.values()].map((route) => route.service.degraded.length),
    [1, 1, 1],
  );
  assert.deepEqual(sourceChecks(matcher), [first, first, first]);
});

test('applies changed source ranges at once', () => {
  const table = tableOf(['10.0.0.0/8']);
  const entry = entryOf(table, 'service');
  const matcher = createMatcher(table, 'n1');
  put(matcher, withRanges(entry, ['192.0.2.0/24']));
  assert.deepEqual(admitted(matcher, '10.1.1.1'), [false, false, false]);
  assert.deepEqual(admitted(matcher, '192.0.2.1'), [true, true, true]);
  put(matcher, withRanges(entry, ['10.0.0.0/8', '2001:db8::/32']));
  assert.deepEqual(admitted(matcher, '192.0.2.1'), [false, false, false]);
  assert.deepEqual(admitted(matcher, '2001:db8::1'), [true, true, true]);
  put(matcher, withRanges(entry, []));
  assert.deepEqual(admitted(matcher, '192.0.2.1'), [true, true, true]);
  put(matcher, withRanges(entry, ['10.0.0.0/8']));
  assert.deepEqual(admitted(matcher, '192.0.2.1'), [false, false, false]);
});

test('admits no client if all source ranges are invalid', () => {
  const table = tableOf(['10.0.0.0/8']);
  const matcher = createMatcher(table, 'n1');
  put(matcher, withRanges(entryOf(table, 'service'), ['nonsense']));
  assert.deepEqual(admitted(matcher, '10.1.1.1'), [false, false, false]);
});
