import { isJsonEqual } from '../json-equal.ts';
import { type Entry, type ListenerEntry, listenerId, serviceId } from '../table/entry.ts';
import { type Change, entryIdOf } from '../table/table.ts';

// A large set of changes, to be made in steps between which connections get their turn.

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

// Which Services must be changed in one step because of what is no entry of its own: a name that clients ask for on a shared port, and
// a place that goes from one who has it alone to those who share it, or back.

/** Several Services with the same `what` belong together. */
export type ResourceUse = readonly [what: string, service: string];

/** What a node knows before the changes. */
export interface ResourceIndex {
  readonly node: string;
  readonly entries: ReadonlyMap<string, Entry>;
  listenersOf(service: string): Iterable<ListenerEntry>;
}

/**
 * Bonds between those who give or take the same host, or a host and the wildcard that is for it, too: one after the other, a client
 * would meet nobody in between, or one who has the name neither before nor after. Costs what changes, and little where nothing is shared.
 */
export function sharedResourceUses(changes: readonly Change[], index: ResourceIndex): ResourceUse[] {
  /** Services that share a place, or did, by the id that the entry of one who has it alone would have. */
  const places = new Map<string, Set<string>>();
  const services = new Set<string>();
  for (const change of changes) {
    const before = index.entries.get(entryIdOf(change));
    const after = change.kind === 'put' ? change.entry : undefined;
    if (hostsOf(before) !== hostsOf(after) && !isJsonEqual(hostsOf(before), hostsOf(after))) addService(before, after);
    addShare(before);
    addShare(after);
  }
  // Most have neither: of them nothing more is asked.
  if (services.size === 0) return [];
  const last = new Map(changes.map((change) => [entryIdOf(change), change]));
  const ofPlaces = [...places].flatMap(([place, sharers]) => bindingUses(place, sharers, { last, index }));
  return [...ofPlaces, ...hostNameUses(services, { last, putListeners: putListenersByService(last, index), index })];

  function addService(...sides: readonly (Entry | undefined)[]): void {
    for (const entry of sides) if (entry?.kind === 'service') services.add(entry.uid);
  }

  function addShare(entry: Entry | undefined): void {
    if (entry?.kind !== 'listener' || entry.shared !== true || entry.node !== index.node) return;
    const place = listenerId(entry);
    places.set(place, (places.get(place) ?? new Set()).add(entry.service));
    services.add(entry.service);
  }
}

/** When one who has it alone gives or takes it; from one such to another it is one entry, and the holders say so. */
function bindingUses(
  place: string,
  sharers: ReadonlySet<string>,
  { last, index }: Pick<ChangedEntries, 'last' | 'index'>,
): ResourceUse[] {
  const change = last.get(place);
  if (change === undefined) return [];
  const several = new Set(sharers);
  for (const entry of [index.entries.get(place), change.kind === 'put' ? change.entry : undefined])
    if (entry?.kind === 'listener') several.add(entry.service);
  return several.size > 1 ? [...several].map((uid): ResourceUse => [`place/${place}`, uid]) : [];
}

interface ChangedEntries {
  readonly last: ReadonlyMap<string, Change>;
  /** By Service, those that are put. */
  readonly putListeners: ReadonlyMap<string, readonly ListenerEntry[]>;
  readonly index: ResourceIndex;
}

function putListenersByService(
  last: ReadonlyMap<string, Change>,
  { node }: ResourceIndex,
): ReadonlyMap<string, ListenerEntry[]> {
  const listeners = [...last.values()].flatMap((change) =>
    change.kind === 'put' && change.entry.kind === 'listener' && change.entry.node === node ? [change.entry] : [],
  );
  return Map.groupBy(listeners, ({ service }) => service);
}

function hostNameUses(services: ReadonlySet<string>, changed: ChangedEntries): ResourceUse[] {
  const moving = [...services].flatMap((uid) => [...movedHostNames(uid, changed)].map((name) => ({ uid, name })));
  const wildcards = new Set(moving.filter(({ name }) => name.includes('/*.')).map(({ name }) => name));
  return moving.flatMap(({ uid, name }): ResourceUse[] => {
    const above = name.replace(/\/[^.]+/, '/*');
    return wildcards.has(above) && above !== name
      ? [
          [`name/${name}`, uid],
          [`name/${above}`, uid],
        ]
      : [[`name/${name}`, uid]];
  });
}

/** `port/host` of each that the Service gives or takes on this node. */
function movedHostNames(uid: string, { last, putListeners, index }: ChangedEntries): Set<string> {
  const service = last.get(serviceId(uid));
  const entryBefore = index.entries.get(serviceId(uid));
  const entryAfter = service === undefined ? entryBefore : service.kind === 'put' ? service.entry : undefined;
  const listeners = [...index.listenersOf(uid)];
  const stay = listeners.filter(({ id }) => !last.has(id));
  const before = hostNamesOf(listeners, hostsOf(entryBefore));
  const after = hostNamesOf([...stay, ...(putListeners.get(uid) ?? [])], hostsOf(entryAfter));
  return new Set([...before, ...after].filter((name) => before.has(name) !== after.has(name)));
}

function hostNamesOf(listeners: readonly ListenerEntry[], hosts: readonly string[]): Set<string> {
  const ports = new Set(listeners.filter(({ shared }) => shared === true).map(({ port }) => port));
  return new Set([...ports].flatMap((port) => hosts.map((host) => `${port}/${host}`)));
}

function hostsOf(entry: Entry | undefined): readonly string[] {
  return entry?.kind === 'service' ? (entry.settings?.hosts ?? NO_HOSTS) : NO_HOSTS;
}

const NO_HOSTS: readonly string[] = [];
