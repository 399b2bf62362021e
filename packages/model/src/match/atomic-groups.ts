import { isJsonEqual } from '../compare.ts';
import { type Entry, type HttpRouteEntry, type ListenerEntry, listenerId, serviceId } from '../table/entry.ts';
import { type Change, entryIdOf } from '../table/table.ts';

// Divides a large set of changes into groups that are applied one after the other, so that connections are served between two groups.

/** Changes that must be applied together. */
export interface AtomicGroup {
  /** UIDs of the Services that the changes affect; empty if the changes affect no particular Service. */
  readonly services: readonly string[];
  readonly changes: readonly Change[];
}

/**
 * Groups changes by Service, so that all routes of a Service change at once. If an entry changes several times, only its last change
 * counts. If a listener, or a host or path of a shared port, passes from one Service to another, both Services are in the same group. Changes
 * that belong to no Service, such as the zone of the node, form the first group. `uses` is the result of `movedResources` for `changes`.
 *
 * Invariant: after each group, every listener has either its old or its new route, and every path of every host name has either its old or
 * its new owner. A change of the node's zone is an exception, because it affects all routes at once.
 */
export function atomicGroupsFor(changes: readonly Change[], uses: Iterable<ResourceUse>): AtomicGroup[] {
  const lastChanges = lastChangesById(changes);
  const connected = new UnionFind();
  const userOf = new Map<string, string>();
  for (const [resource, service] of uses) {
    connected.union(service, userOf.get(resource) ?? service);
    userOf.set(resource, service);
  }
  const serviceByChange = new Map<Change, string | undefined>();
  for (const [id, change] of lastChanges) {
    const user = userOf.get(id);
    const service = serviceOfChange(change) ?? user;
    if (service !== undefined) connected.union(service, user ?? service);
    serviceByChange.set(change, service);
  }
  const general: Change[] = [];
  const groups = new Map<string, { readonly services: Set<string>; readonly changes: Change[] }>();
  for (const [change, service] of serviceByChange) {
    if (service === undefined) {
      general.push(change);
      continue;
    }
    const root = connected.find(service);
    const group = groups.get(root) ?? { services: new Set(), changes: [] };
    groups.set(root, group);
    group.services.add(service);
    group.changes.push(change);
  }
  const ofServices = [...groups.values()].map((group): AtomicGroup => ({ ...group, services: [...group.services] }));
  return general.length === 0 ? ofServices : [{ services: [], changes: general }, ...ofServices];
}

function lastChangesById(changes: readonly Change[]): ReadonlyMap<string, Change> {
  return new Map(changes.map((change) => [entryIdOf(change), change]));
}

const SERVICE_ENTRY_KINDS = ['service', 'certificate', 'error-pages', 'endpoints'];

/**
 * Returns the UID of the Service that a change belongs to. Returns undefined if the entry belongs to no Service. Also returns undefined for
 * a deleted listener, because the id of an exclusive listener does not contain the UID of its Service.
 */
export function serviceOfChange(change: Change): string | undefined {
  if (change.kind === 'delete') {
    const [kind = '', uid] = change.id.split('/', 2);
    return SERVICE_ENTRY_KINDS.includes(kind) ? uid : undefined;
  }
  const { entry } = change;
  if (entry.kind === 'service') return entry.uid;
  return 'service' in entry ? entry.service : undefined;
}

/** Disjoint sets of Services that must change together (union-find with path compression). */
class UnionFind {
  readonly #parents = new Map<string, string>();

  union(a: string, b: string): void {
    const [root, joining] = [this.find(a), this.find(b)];
    if (root !== joining) this.#parents.set(joining, root);
  }

  find(service: string): string {
    let root = service;
    for (let parent = this.#parents.get(root); parent !== undefined; parent = this.#parents.get(root)) root = parent;
    for (let node = service; node !== root; ) {
      const parent = this.#parents.get(node) ?? root;
      this.#parents.set(node, root);
      node = parent;
    }
    return root;
  }
}

// Two kinds of resources can pass between Services although the table has no entry for them: a host name on a shared port, with all paths or
// the paths of a prefix, and a binding (address, protocol, port) that becomes shared or exclusive. HTTP routes have entries, but these entries
// belong to no Service.

/** Records that a Service (by UID) has a resource before or after the changes. All Services that have the same resource change together. */
export type ResourceUse = readonly [resource: string, service: string];

/** The table of a node before the changes. */
export interface ResourceIndex {
  readonly node: string;
  readonly entries: ReadonlyMap<string, Entry>;
  listenersOf(service: string): Iterable<ListenerEntry>;
}

/**
 * Returns which Services gain or lose a host name on a shared port or paths of this name, and which Services use a binding that becomes shared
 * or exclusive. A changed HTTP route is used by all its backends, and counts as a move of its host names. If a wildcard moves, each moved host
 * name that the wildcard matches also counts as a use of the wildcard. All these Services must change together: between two changes, a client
 * could reach no Service, or a Service that owns the host name neither before nor after. Costs O(changes), and little if no port is shared.
 */
export function sharedResourceUses(changes: readonly Change[], index: ResourceIndex): ResourceUse[] {
  /** By binding (`listenerId`), the UIDs of the Services that share the binding before or after the changes. */
  const sharersByBinding = new Map<string, Set<string>>();
  const services = new Set<string>();
  const httpRoutes: HttpRouteEntry[] = [];
  for (const change of changes) {
    const before = index.entries.get(entryIdOf(change));
    const after = change.kind === 'put' ? change.entry : undefined;
    for (const entry of [before, after]) if (entry?.kind === 'http-route') httpRoutes.push(entry);
    if (haveHostsOrPathsMoved(before, after)) addService(before, after);
    addSharer(before);
    addSharer(after);
  }
  if (services.size === 0 && httpRoutes.length === 0) return [];
  const lastChanges = lastChangesById(changes);
  const ofBindings = [...sharersByBinding].flatMap(([binding, sharers]) =>
    bindingUses(binding, sharers, { lastChanges, index }),
  );
  const changed = { lastChanges, putListeners: putListenersByService(lastChanges, index), index };
  const ofServices = [...services].flatMap((uid) => [...movedHostNames(uid, changed)].map((name) => ({ uid, name })));
  const moves = [...ofServices, ...httpRoutes.flatMap(hostNamesOf)];
  return [...ofBindings, ...httpRoutes.flatMap(backendUses), ...hostNameUses(moves)];

  function addService(...sides: readonly (Entry | undefined)[]): void {
    for (const entry of sides) if (entry?.kind === 'service') services.add(entry.uid);
  }

  function addSharer(entry: Entry | undefined): void {
    if (entry?.kind !== 'listener' || entry.shared !== true || entry.node !== index.node) return;
    const binding = listenerId(entry);
    sharersByBinding.set(binding, (sharersByBinding.get(binding) ?? new Set()).add(entry.service));
    services.add(entry.service);
  }
}

/**
 * Returns the uses of a binding that passes from an exclusive owner to several Services, or back; an empty list for any other binding.
 * (`movedResources` handles a binding that stays exclusive.)
 */
function bindingUses(
  binding: string,
  sharers: ReadonlySet<string>,
  { lastChanges, index }: Pick<ChangedEntries, 'lastChanges' | 'index'>,
): ResourceUse[] {
  const change = lastChanges.get(binding);
  if (change === undefined) return [];
  const users = new Set(sharers);
  for (const entry of [index.entries.get(binding), change.kind === 'put' ? change.entry : undefined])
    if (entry?.kind === 'listener') users.add(entry.service);
  return users.size > 1 ? [...users].map((uid): ResourceUse => [`binding/${binding}`, uid]) : [];
}

interface ChangedEntries {
  /** The last change of each entry, by entry id. */
  readonly lastChanges: ReadonlyMap<string, Change>;
  /** By Service UID, the listeners of this node that the changes put. */
  readonly putListeners: ReadonlyMap<string, readonly ListenerEntry[]>;
  readonly index: ResourceIndex;
}

function putListenersByService(
  lastChanges: ReadonlyMap<string, Change>,
  { node }: ResourceIndex,
): ReadonlyMap<string, ListenerEntry[]> {
  const listeners = [...lastChanges.values()].flatMap((change) =>
    change.kind === 'put' && change.entry.kind === 'listener' && change.entry.node === node ? [change.entry] : [],
  );
  return Map.groupBy(listeners, ({ service }) => service);
}

/** Returns a use of the entry by each backend, so that the route changes together with all of them. */
function backendUses({ id, route }: HttpRouteEntry): ResourceUse[] {
  return route.backends.map(({ service }): ResourceUse => [id, service]);
}

/** A Service gains or loses a host name (`port/host`), or paths of this name. */
interface HostNameMove {
  readonly uid: string;
  readonly name: string;
}

/** Returns the host names of an HTTP route as moves of one backend. The name `port/*` stands for all hosts that no route names. */
function hostNamesOf({ ports, route: { hosts, backends } }: HttpRouteEntry): HostNameMove[] {
  const uid = backends[0]?.service;
  if (uid === undefined) return [];
  const names = hosts.length === 0 ? ['*'] : hosts;
  return ports.flatMap((port) => names.map((host) => ({ uid, name: `${port}/${host}` })));
}

function hostNameUses(moves: readonly HostNameMove[]): ResourceUse[] {
  const moved = new Set(moves.map(({ name }) => name));
  return moves.flatMap(({ uid, name }) =>
    [name, ...widerNames(name)].filter((each) => moved.has(each)).map((each): ResourceUse => [`name/${each}`, uid]),
  );
}

/** Returns the names whose owners get the requests that a host name loses: the wildcard that matches the host name, and `port/*`. */
function widerNames(name: string): readonly string[] {
  return [name.replace(/\/[^.]+/, '/*'), name.replace(/\/.*/, '/*')];
}

/** Returns `port/host` of each host name that the Service gains or loses, or of which it gains or loses paths, on this node. */
function movedHostNames(uid: string, { lastChanges, putListeners, index }: ChangedEntries): Set<string> {
  const service = lastChanges.get(serviceId(uid));
  const entryBefore = index.entries.get(serviceId(uid));
  const entryAfter = service === undefined ? entryBefore : service.kind === 'put' ? service.entry : undefined;
  const listeners = [...index.listenersOf(uid)];
  const unchanged = listeners.filter(({ id }) => !lastChanges.has(id));
  const before = pathsByHostName(listeners, entryBefore);
  const after = pathsByHostName([...unchanged, ...(putListeners.get(uid) ?? [])], entryAfter);
  return new Set([...before.keys(), ...after.keys()].filter((name) => before.get(name) !== after.get(name)));
}

/** Returns the path prefix of the Service, or `/`, by `port/host` of its host names. */
function pathsByHostName(listeners: readonly ListenerEntry[], service: Entry | undefined): Map<string, string> {
  const own = listeners.filter(({ shared, backendPort }) => shared === true && backendPort === undefined);
  const ports = new Set(own.map(({ port }) => port));
  const hosts = hostsOf(service);
  const path = pathPrefixOf(service) ?? '/';
  return new Map([...ports].flatMap((port) => hosts.map((host) => [`${port}/${host}`, path] as const)));
}

function haveHostsOrPathsMoved(before: Entry | undefined, after: Entry | undefined): boolean {
  if (pathPrefixOf(before) !== pathPrefixOf(after)) return true;
  const [hostsBefore, hostsAfter] = [hostsOf(before), hostsOf(after)];
  return hostsBefore !== hostsAfter && !isJsonEqual(hostsBefore, hostsAfter);
}

function hostsOf(entry: Entry | undefined): readonly string[] {
  return entry?.kind === 'service' ? (entry.settings?.hosts ?? NO_HOSTS) : NO_HOSTS;
}

function pathPrefixOf(entry: Entry | undefined): string | undefined {
  return entry?.kind === 'service' ? entry.settings?.pathPrefix : undefined;
}

const NO_HOSTS: readonly string[] = [];
