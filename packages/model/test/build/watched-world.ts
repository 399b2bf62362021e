import assert from 'node:assert/strict';
import {
  allocationsFor,
  entriesOf,
  NO_ALLOCATIONS,
  type RoutingTable,
  type ServiceObject,
  type Snapshot,
  Translator,
  translate,
} from '@weir/model';

export interface TranslatorProbe {
  /** The message of a Service, by its name. */
  accepted(name: string): string;
  /** Names of those that are served, of this namespace or of all. */
  serving(namespace?: string): string[];
  /** The Services that were looked at, and those whose entry is another by it; in the end all is as if it were decided at once. */
  step(
    change: (services: readonly ServiceObject[]) => readonly ServiceObject[],
    policies?: Snapshot['policies'],
  ): { readonly looked: readonly string[]; readonly changed: readonly string[] };
}

/** Translates one snapshot after the other, and finds out at which Services it looks. */
export function startTranslatorProbe(first: Snapshot): TranslatorProbe {
  const looked = new Set<string>();
  // Whoever decides about a Service reads its ports.
  const watched = (each: ServiceObject): ServiceObject => {
    const { ports } = each;
    return Object.defineProperty({ ...each }, 'ports', {
      enumerable: true,
      get() {
        looked.add(each.name);
        return ports;
      },
    });
  };
  let snapshot = { ...first, services: first.services.map(watched) };
  const translator = new Translator(snapshot.settings, NO_ALLOCATIONS);
  let { table } = translator.translate(snapshot);
  return {
    accepted: (name: string): string => serviceNamed(table, name).accepted.message,
    serving: (namespace?: string): string[] =>
      entriesOf(table, 'service')
        .filter((each) => each.namespace === (namespace ?? each.namespace) && each.settings !== null)
        .map(({ name }) => name)
        .sort(),
    step(change, policies = snapshot.policies) {
      const [known, before] = [new Set(snapshot.services), table];
      const next = change(snapshot.services).map((each) => (known.has(each) ? each : watched(each)));
      snapshot = { ...snapshot, services: next, policies };
      looked.clear();
      const decided = translator.translate(snapshot);
      const at = [...looked].sort();
      table = decided.table;
      const whole = translate(snapshot, allocationsFor(before));
      assert.deepEqual(sorted(table), sorted(whole.table));
      assert.deepEqual(decided.problems, whole.problems);
      const changed = entriesOf(table, 'service').filter((each) => before.entries.get(each.id) !== each);
      return { looked: at, changed: changed.map(({ name }) => name).sort() };
    },
  };
}

const sorted = ({ entries }: RoutingTable): unknown => [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
const serviceNamed = (table: RoutingTable, name: string) =>
  entriesOf(table, 'service').find((each) => each.name === name) ?? assert.fail(`no Service ${name}`);
