// A large set of changes, to be made in steps between which connections get their turn.
import { idOf } from '../table/diff.ts';
import type { Change } from '../table/table.ts';

/** What is made at once. */
export interface ChangeStep {
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
export function stepsFor(
  changes: readonly Change[],
  holders: Iterable<readonly [what: string, service: string]>,
): ChangeStep[] {
  const last = new Map(changes.map((change) => [idOf(change), change]));
  const parties = new Parties();
  const holderOf = new Map<string, string>();
  for (const [what, service] of holders) {
    parties.join(service, holderOf.get(what) ?? service);
    holderOf.set(what, service);
  }
  const touched = new Map<Change, string | undefined>();
  for (const [id, change] of last) {
    const holder = holderOf.get(id);
    const service = serviceOfChange(change) ?? holder;
    if (service !== undefined) parties.join(service, holder ?? service);
    touched.set(change, service);
  }
  const general: Change[] = [];
  const steps = new Map<string, { readonly services: Set<string>; readonly changes: Change[] }>();
  for (const [change, service] of touched) {
    if (service === undefined) {
      general.push(change);
      continue;
    }
    const head = parties.headOf(service);
    const step = steps.get(head) ?? { services: new Set(), changes: [] };
    steps.set(head, step);
    step.services.add(service);
    step.changes.push(change);
  }
  const rest = [...steps.values()].map((step): ChangeStep => ({ ...step, services: [...step.services] }));
  return general.length === 0 ? rest : [{ services: [], changes: general }, ...rest];
}

const OF_ONE_SERVICE = ['service', 'certificate', 'endpoints'];

/** The UID of the Service that an entry is of; undefined: of none, or a listener that goes, which does not say whose it was. */
export function serviceOfChange(change: Change): string | undefined {
  if (change.kind === 'delete') {
    const [kind = '', uid] = change.id.split('/', 2);
    return OF_ONE_SERVICE.includes(kind) ? uid : undefined;
  }
  const { entry } = change;
  if (entry.kind === 'service') return entry.uid;
  return 'service' in entry ? entry.service : undefined;
}

/** Union-find: Services that must be changed together. */
class Parties {
  readonly #above = new Map<string, string>();

  join(one: string, other: string): void {
    const [head, joining] = [this.headOf(one), this.headOf(other)];
    if (head !== joining) this.#above.set(joining, head);
  }

  headOf(service: string): string {
    let head = service;
    for (let above = this.#above.get(head); above !== undefined; above = this.#above.get(head)) head = above;
    // Shortened, so that a long chain is walked once.
    for (let at = service; at !== head; ) {
      const above = this.#above.get(at) ?? head;
      this.#above.set(at, head);
      at = above;
    }
    return head;
  }
}
