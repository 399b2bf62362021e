import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apply, type Change, diff, type Entry, type RoutingTable, tableOf } from '@weir/model';
import fc from 'fast-check';

const IDS = ['a', 'b', 'c', 'd', 'e'];

const change: fc.Arbitrary<Change> = fc.oneof(
  fc
    .record({ id: fc.constantFrom(...IDS), priority: fc.nat(3) })
    .map(({ id, priority }): Change => ({ kind: 'put', entry: entryOf(id, `${priority}`) })),
  fc.constantFrom(...IDS).map((id): Change => ({ kind: 'delete', id })),
);
/** A change of one version of the table. `from` counts back from the last version and is mostly 0, the last version. */
const step = fc.record({
  from: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(5)),
  changes: fc.array(change),
});
/** The indices of two versions that the test compares after a step, because a comparison may link the two versions directly. */
const comparison = fc.record({ before: fc.nat(20), after: fc.nat(20) });

test('every version of a table stays unchanged, and diff finds all differences', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 12 }),
      fc.array(comparison, { maxLength: 12 }),
      fc.array(fc.constantFrom(...IDS).map((id) => entryOf(id, 'first'))),
      (steps, comparisons, first) => {
        const start = new Map(first.map((entry) => [entry.id, entry]));
        const versions: RoutingTable[] = [tableOf(start.values())];
        const models: ReadonlyMap<string, Entry>[] = [start];
        for (const [index, { from, changes }] of steps.entries()) {
          const at = Math.max(0, versions.length - 1 - from);
          versions.push(apply(versions[at] as RoutingTable, changes));
          models.push(changed(models[at] as ReadonlyMap<string, Entry>, changes));
          const compared = comparisons[index];
          if (compared !== undefined) expectDiff(compared.before % versions.length, compared.after % versions.length);
        }
        for (const [index, model] of models.entries()) expectSame((versions[index] as RoutingTable).entries, model);
        for (const before of versions.keys()) for (const after of versions.keys()) expectDiff(before, after);

        function expectDiff(before: number, after: number): void {
          const [a, b] = [models[before], models[after]] as [ReadonlyMap<string, Entry>, ReadonlyMap<string, Entry>];
          const ids = IDS.filter(
            (id) => a.get(id)?.kind !== b.get(id)?.kind || textOf(a.get(id)) !== textOf(b.get(id)),
          );
          const found = diff(versions[before] as RoutingTable, versions[after] as RoutingTable);
          assert.deepEqual(
            found.map((each) => (each.kind === 'put' ? [each.entry.id, textOf(each.entry)] : [each.id, undefined])),
            ids.map((id) => [id, textOf(b.get(id))]),
          );
        }
      },
    ),
  );
});

function expectSame(entries: ReadonlyMap<string, Entry>, model: ReadonlyMap<string, Entry>): void {
  assert.equal(entries.size, model.size);
  assert.deepEqual(new Map([...entries]), model);
  assert.deepEqual([...entries.keys()].sort(), [...model.keys()].sort());
  for (const id of IDS) {
    assert.equal(entries.get(id), model.get(id));
    assert.equal(entries.has(id), model.has(id));
  }
}

function changed(before: ReadonlyMap<string, Entry>, changes: readonly Change[]): ReadonlyMap<string, Entry> {
  const after = new Map(before);
  for (const each of changes) {
    if (each.kind === 'put') after.set(each.entry.id, each.entry);
    else after.delete(each.id);
  }
  return after;
}

function textOf(entry: Entry | undefined): string | undefined {
  return entry?.kind === 'tenant' ? (entry.policy ?? '') : undefined;
}

function entryOf(id: string, policy: string): Entry {
  return { kind: 'tenant', id, name: id, policy, namespaces: [], limits: {}, used: { services: 0, ports: 0 } };
}
