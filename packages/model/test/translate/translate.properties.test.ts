import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allocationsFor,
  apply,
  decodeEntry,
  diff,
  type Entry,
  encodeEntry,
  entriesOf,
  NO_ALLOCATIONS,
  type RoutingTable,
  type Snapshot,
  translate,
} from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import fc from 'fast-check';
import { services, slices, snapshots } from '../fixtures/arbitrary-snapshot.ts';

const tableOf = (snapshot: Snapshot, before?: RoutingTable): RoutingTable =>
  translate(snapshot, before === undefined ? NO_ALLOCATIONS : allocationsFor(before)).table;

test('apply(a, diff(a, b)) equals b, and diff(a, a) is empty', () => {
  fc.assert(
    fc.property(snapshots, snapshots, (one, two) => {
      const [a, b] = [tableOf(one), tableOf(two)];
      assert.deepEqual(new Map([...apply(a, diff(a, b)).entries].sort()), new Map([...b.entries].sort()));
      assert.deepEqual(diff(a, a), []);
      assert.deepEqual(diff(a, tableOf(one)), []);
    }),
  );
});

test('decodes every encoded entry to an equal entry', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      for (const entry of tableOf(snapshot).entries.values()) assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
    }),
  );
});

test('decodes no damaged text as an entry', () => {
  fc.assert(
    fc.property(fc.string(), fc.json(), (text, json) => {
      for (const damaged of [text, json, `{"v":2,"kind":"node"}`, `{"v":1,"kind":"constructor","id":"x"}`]) {
        assert.equal(decodeEntry(damaged), undefined);
      }
    }),
  );
});

test('translates a frozen snapshot to the same result in any order of its lists', () => {
  const shuffled = snapshots.chain((snapshot) =>
    fc
      .record({
        services: order(snapshot.services),
        slices: order(snapshot.slices),
        nodes: order(snapshot.nodes),
        policies: order(snapshot.policies),
        namespaces: order(snapshot.namespaces),
      })
      .map((parts) => [deepFreeze(snapshot), deepFreeze({ ...snapshot, ...parts })] as const),
  );
  fc.assert(
    fc.property(shuffled, ([one, two]) =>
      assert.deepEqual(translate(one, NO_ALLOCATIONS), translate(two, NO_ALLOCATIONS)),
    ),
  );
});

function order<T>(items: readonly T[]): fc.Arbitrary<T[]> {
  return fc.shuffledSubarray([...items], { minLength: items.length, maxLength: items.length });
}

test('translates the same snapshot over its own allocations to the same table', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const first = tableOf(snapshot);
      assert.deepEqual(diff(first, tableOf(snapshot, first)), []);
    }),
  );
});

test('keeps what tenants b and c own, whatever tenant a changes', () => {
  const histories = fc.tuple(snapshots, services(['a']), slices(['a']));
  fc.assert(
    fc.property(histories, ([before, services, slices]) => {
      const after = {
        ...before,
        services: [...before.services.filter(notOfA), ...services],
        slices: [...before.slices.filter(notOfA), ...slices],
      };
      const first = tableOf(before);
      const second = tableOf(after, first);
      for (const entry of first.entries.values()) {
        if (ownerOf(entry, first) === 'a' || !isData(entry)) continue;
        const now = second.entries.get(entry.id);
        // A Service that was refused may be served now, because tenant a may have released the port that blocked the Service.
        if (entry.kind === 'service' && entry.settings === null) continue;
        if (entry.kind === 'service' && now?.kind === 'service') {
          assert.deepEqual(now.settings, entry.settings);
          for (const node of entry.nodes) assert.ok(now.nodes.includes(node), `${entry.id} lost ${node}`);
        } else assert.deepEqual(now, entry);
      }
    }),
    { numRuns: 300 },
  );
});

const notOfA = ({ namespace }: { readonly namespace: string }): boolean => namespace !== 'a';
const isData = (entry: Entry): boolean => ['service', 'listener', 'endpoints'].includes(entry.kind);

function ownerOf(entry: Entry, table: RoutingTable): string | undefined {
  const uid = entry.kind === 'service' ? entry.uid : 'service' in entry ? entry.service : '';
  return entriesOf(table, 'service').find((service) => service.uid === uid)?.namespace;
}

test('gives listeners only to Services that are served, and counts these Services', () => {
  fc.assert(
    fc.property(snapshots, snapshots, (one, two) => {
      const table = tableOf(two, tableOf(one));
      const served = new Set(
        entriesOf(table, 'service').flatMap(({ uid, settings }) => (settings === null ? [] : [uid])),
      );
      for (const listener of entriesOf(table, 'listener')) assert.ok(served.has(listener.service));
      for (const { name, used } of entriesOf(table, 'tenant')) {
        const own = entriesOf(table, 'service').filter(({ tenant, settings }) => tenant === name && settings !== null);
        assert.equal(used.services, own.length);
      }
    }),
  );
});
