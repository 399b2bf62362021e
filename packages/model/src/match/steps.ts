// A large set of changes, to be made in steps between which connections get their turn.
import { entryIdOf } from '../table/diff.ts';
import type { Change } from '../table/table.ts';

/** What is made at once. */
export interface AtomicGroup {
  /** UIDs of the Services that it touches; empty: none. */
  readonly services: readonly string[];
  readonly changes: readonly Change[];
}

/**
 * The last change of each entry, divided so that each Service goes from its old routes to its new ones in one step, and
 * with it those to or from which a listener or a host of a shared port changes hands. `holders`: as `holdersOf` says of the same changes.
 * Law: between any two steps each listener has the route that it had or the one that it gets, and each name that a client may
 * ask for the owner that it had or gets (the zone of the node, which goes first, excepted).
 */
export function atomicGroupsFor(
  changes: readonly Change[],
  holders: Iterable<readonly [what: string, service: string]>,
): AtomicGroup[] {
  const last = new Map(changes.map((change) => [entryIdOf(change), change]));
  const parties = new UnionFind();
  const holderOf = new Map<string, string>();
  for (const [what, service] of holders) {
    parties.union(service, holderOf.get(what) ?? service);
    holderOf.set(what, service);
  }
  const touched = new Map<Change, string | undefined>();
  for (const [id, change] of last) {
    const holder = holderOf.get(id);
    const service = serviceOfChange(change) ?? holder;
    if (service !== undefined) parties.union(service, holder ?? service);
    touched.set(change, service);
  }
  const general: Change[] = [];
  const steps = new Map<string, { readonly services: Set<string>; readonly changes: Change[] }>();
  for (const [change, service] of touched) {
    if (service === undefined) {
      general.push(change);
      continue;
    }
    const head = parties.find(service);
    const step = steps.get(head) ?? { services: new Set(), changes: [] };
    steps.set(head, step);
    step.services.add(service);
    step.changes.push(change);
  }
  const rest = [...steps.values()].map((step): AtomicGroup => ({ ...step, services: [...step.services] }));
  return general.length === 0 ? rest : [{ services: [], changes: general }, ...rest];
}

const SERVICE_ENTRY_KINDS = ['service', 'certificate', 'endpoints'];

/** The UID of the Service that an entry is of; undefined: of none, or a listener that goes, which does not say whose it was. */
export function serviceOfChange(change: Change): string | undefined {
  if (change.kind === 'delete') {
    const [kind = '', uid] = change.id.split('/', 2);
    return SERVICE_ENTRY_KINDS.includes(kind) ? uid : undefined;
  }
  const { entry } = change;
  if (entry.kind === 'service') return entry.uid;
  return 'service' in entry ? entry.service : undefined;
}

/** Union-find: Services that must be changed together. */
class UnionFind {
  readonly #parents = new Map<string, string>();

  union(one: string, other: string): void {
    const [head, joining] = [this.find(one), this.find(other)];
    if (head !== joining) this.#parents.set(joining, head);
  }

  find(service: string): string {
    let head = service;
    for (let above = this.#parents.get(head); above !== undefined; above = this.#parents.get(head)) head = above;
    // Shortened, so that a long chain is walked once.
    for (let at = service; at !== head; ) {
      const above = this.#parents.get(at) ?? head;
      this.#parents.set(at, head);
      at = above;
    }
    return head;
  }
}
