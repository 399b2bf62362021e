import { compareText } from '../compare.ts';
import {
  type CertificateEntry,
  type EndpointsEntry,
  type Entry,
  type ErrorPagesEntry,
  type HttpRouteEntry,
  type ListenerEntry,
  nodeId,
  type ServiceEntry,
  servicePortOf,
} from '../table/entry.ts';
import { type Change, entryIdOf, type RoutingTable } from '../table/table.ts';
import { type ResourceUse, sharedResourceUses } from './atomic-groups.ts';
import { ListenerRoutes } from './listener-routes.ts';
import { PortHttpRoutes } from './port-http-routes.ts';
import {
  compileRoute,
  type ListenerKey,
  listenerKeyOfRoute,
  type Route,
  type RouteKey,
  routeKey,
  type SourceRangeCheck,
  sourceRangeCheckFor,
} from './route.ts';

// The routing table of one node, compiled for look-up. `patchMatcher` changes a matcher in place, because a copy would cost as much as the
// whole table. Routes are immutable, so open connections keep the route that they began with. Invariant: a patched matcher has the same
// routes as `createMatcher` returns for the changed table.
export interface Matcher {
  readonly node: string;
  readonly routes: ReadonlyMap<RouteKey, Route>;
  /** The listeners of the node, each with its routes. */
  readonly listeners: ReadonlyMap<ListenerKey, ListenerRoutes>;
}

/** A matcher with the indexes by which `patchMatcher` finds the routes that a change affects. */
interface MutableMatcher extends Matcher {
  readonly routes: Map<RouteKey, Route>;
  readonly listeners: Map<ListenerKey, ListenerRoutes>;
  readonly entries: Map<string, Entry>;
  readonly partsByService: Map<string, ServiceParts>;
  /** The TCP ports with HTTP routes or with listeners that Services share. */
  readonly httpRoutesByPort: Map<number, PortHttpRoutes>;
  /** The zone of the node; null if the node has none. */
  zone: string | null;
}

/** The table entries of one Service. */
interface ServiceParts {
  service: ServiceEntry | undefined;
  sourceRangeCheck: SourceRangeCheck | undefined;
  readonly certificates: SmallEntryMap<CertificateEntry>;
  errorPages: ErrorPagesEntry | undefined;
  readonly listeners: SmallEntryMap<ListenerEntry>;
  readonly endpoints: SmallEntryMap<EndpointsEntry>;
}

/** Compiles the routes of all listeners of a node. */
export function createMatcher(table: RoutingTable, node: string): Matcher {
  const index: MutableMatcher = {
    node,
    routes: new Map(),
    listeners: new Map(),
    entries: new Map(),
    partsByService: new Map(),
    httpRoutesByPort: new Map(),
    zone: null,
  };
  patchMatcher(
    index,
    [...table.entries.values()].map((entry) => ({ kind: 'put', entry })),
  );
  return index;
}

/**
 * Applies changes in place and returns the sorted keys of the routes that were added, changed or removed. Recompiles only the routes of the
 * Services that changed, or all routes if the zone of the node changed.
 */
export function patchMatcher(matcher: Matcher, changes: readonly Change[]): RouteKey[] {
  const index = matcher as MutableMatcher;
  const dirtyServices = new Set<string>();
  const replaced = new Map<RouteKey, string>();
  const zone = zoneAfter(changes, index);
  if (zone !== index.zone) for (const uid of index.partsByService.keys()) dirtyServices.add(uid);
  index.zone = zone;
  for (const change of changes) {
    const old = index.entries.get(entryIdOf(change));
    if (old?.kind === 'listener') replaced.set(routeKey(old), old.service);
    if (old !== undefined) dirtyServices.add(unlink(index, old));
    if (change.kind === 'put') dirtyServices.add(link(index, change.entry));
  }
  const changed = new Set<RouteKey>();
  for (const [key, service] of replaced) {
    if (index.routes.get(key)?.service.uid === service && removeRoute(index, key)) changed.add(key);
  }
  for (const uid of dirtyServices) for (const key of recompile(index, uid)) changed.add(key);
  return [...changed].sort();
}

/**
 * Returns the resources that the changes move between Services, each with the UID of a Service that has the resource. A listener (by entry
 * id) is returned with the Service that loses the listener. A host name or a shared binding is returned with every Service that has the
 * resource before or after the changes. `matcher` must not contain the changes yet.
 */
export function movedResources(matcher: Matcher, changes: readonly Change[]): ResourceUse[] {
  const { node, entries, partsByService } = matcher as MutableMatcher;
  const listenersOf = (uid: string): Iterable<ListenerEntry> => partsByService.get(uid)?.listeners.values() ?? [];
  const uses: ResourceUse[] = [];
  for (const change of changes) {
    const old = entries.get(entryIdOf(change));
    if (old?.kind !== 'listener') continue;
    const stays = change.kind === 'put' && change.entry.kind === 'listener' && change.entry.service === old.service;
    if (!stays) uses.push([old.id, old.service]);
  }
  for (const use of sharedResourceUses(changes, { node, entries, listenersOf })) uses.push(use);
  return uses;
}

function zoneAfter(changes: readonly Change[], { node, zone }: MutableMatcher): string | null {
  const id = nodeId(node);
  const last = changes.findLast((change) => entryIdOf(change) === id);
  if (last === undefined) return zone;
  return last.kind === 'put' && last.entry.kind === 'node' ? last.entry.zone : null;
}

/** Adds an entry to the indexes. Returns the UID of the entry's Service; an empty text if no route of this node depends on the entry. */
function link(index: MutableMatcher, entry: Entry): string {
  if (entry.kind === 'service') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.uid).service = entry;
    return entry.uid;
  }
  if (entry.kind === 'certificate') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.service).certificates.put(entry);
    return entry.service;
  }
  if (entry.kind === 'error-pages') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.service).errorPages = entry;
    return entry.service;
  }
  if (entry.kind === 'endpoints') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.service).endpoints.put(entry);
    return entry.service;
  }
  if (entry.kind === 'listener' && entry.node === index.node) {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.service).listeners.put(entry);
    return entry.service;
  }
  if (entry.kind === 'http-route') {
    index.entries.set(entry.id, entry);
    for (const port of entry.ports) httpRoutesOf(index, port).put(entry);
  }
  return '';
}

function unlink(index: MutableMatcher, entry: Entry): string {
  index.entries.delete(entry.id);
  if (entry.kind === 'http-route') unlinkHttpRoute(index, entry);
  const uid = entry.kind === 'service' ? entry.uid : 'service' in entry ? entry.service : '';
  const parts = index.partsByService.get(uid);
  if (parts === undefined) return '';
  if (entry.kind === 'service') parts.service = undefined;
  else if (entry.kind === 'certificate') parts.certificates.delete(entry.id);
  else if (entry.kind === 'error-pages') parts.errorPages = undefined;
  else if (entry.kind === 'endpoints') parts.endpoints.delete(entry.id);
  else if (entry.kind === 'listener') parts.listeners.delete(entry.id);
  if (isEmptyPart(parts)) index.partsByService.delete(uid);
  return uid;
}

function unlinkHttpRoute(index: MutableMatcher, { id, ports }: HttpRouteEntry): void {
  for (const port of ports) {
    const routes = httpRoutesOf(index, port);
    routes.remove(id);
    if (routes.isEmpty) index.httpRoutesByPort.delete(port);
  }
}

function httpRoutesOf({ httpRoutesByPort }: MutableMatcher, port: number): PortHttpRoutes {
  let routes = httpRoutesByPort.get(port);
  if (routes === undefined) {
    routes = new PortHttpRoutes();
    httpRoutesByPort.set(port, routes);
  }
  return routes;
}

function isEmptyPart({ service, certificates, errorPages, endpoints, listeners }: ServiceParts): boolean {
  const hasEntry = service !== undefined || errorPages !== undefined;
  return !hasEntry && certificates.isEmpty && endpoints.isEmpty && listeners.isEmpty;
}

function partsOf(index: MutableMatcher, uid: string): ServiceParts {
  let parts = index.partsByService.get(uid);
  if (parts === undefined) {
    parts = {
      service: undefined,
      certificates: new SmallEntryMap(),
      errorPages: undefined,
      sourceRangeCheck: undefined,
      listeners: new SmallEntryMap(),
      endpoints: new SmallEntryMap(),
    };
    index.partsByService.set(uid, parts);
  }
  return parts;
}

function recompile(index: MutableMatcher, uid: string): RouteKey[] {
  const parts = index.partsByService.get(uid);
  if (parts === undefined) return [];
  const { service } = parts;
  const ranges = service?.settings?.sourceRanges;
  const sourceRangeCheck = ranges && sourceRangeCheckFor(ranges, parts.sourceRangeCheck);
  parts.sourceRangeCheck = sourceRangeCheck;
  // Groups the chunks once for all listeners, because a Service may have thousands of ports, each with its own chunks.
  const chunks = Map.groupBy(parts.endpoints.values(), portOf);
  const certificates = [...parts.certificates.values()].sort(byPosition);
  const keys: RouteKey[] = [];
  for (const listener of parts.listeners.values()) {
    const key = routeKey(listener);
    keys.push(key);
    if (service !== undefined && sourceRangeCheck !== undefined) {
      const input = {
        zone: index.zone,
        chunks: chunks.get(portOf(listener)) ?? [],
        sourceRangeCheck,
        certificates,
        errorPages: parts.errorPages,
      };
      putRoute(index, compileRoute(listener, service, input));
    } else removeRoute(index, key);
  }
  return keys;
}

/** Sorts certificates by the positions of their Secrets, which are the last parts of their ids. */
function byPosition(a: CertificateEntry, b: CertificateEntry): number {
  return a.id.length - b.id.length || compareText(a.id, b.id);
}

function putRoute(index: MutableMatcher, route: Route): void {
  index.routes.set(route.key, route);
  const key = listenerKeyOfRoute(route.key);
  const listener = index.listeners.get(key) ?? new ListenerRoutes(key);
  index.listeners.set(key, listener);
  listener.put(route);
  const { shared, protocol, port } = route.listener;
  if (shared === true && protocol === 'TCP') httpRoutesOf(index, port).addListener(listener);
}

/** Removes a route. Returns whether the route existed. */
function removeRoute(index: MutableMatcher, key: RouteKey): boolean {
  const route = index.routes.get(key);
  if (route === undefined) return false;
  const listener = index.listeners.get(listenerKeyOfRoute(key));
  listener?.remove(key);
  if (listener?.isEmpty === true) removeListener(index, listener, route.listener.port);
  return index.routes.delete(key);
}

function removeListener({ listeners, httpRoutesByPort }: MutableMatcher, listener: ListenerRoutes, port: number): void {
  listeners.delete(listener.key);
  const routes = httpRoutesByPort.get(port);
  routes?.removeListener(listener);
  if (routes?.isEmpty === true) httpRoutesByPort.delete(port);
}

/** Returns the protocol and the port of the Service. */
function portOf(entry: ListenerEntry | EndpointsEntry): string {
  return `${entry.protocol}/${servicePortOf(entry)}`;
}

/**
 * Entries by id. Creates a Map only when a second entry is added. This saves memory, because most Services have only one entry of a kind.
 */
export class SmallEntryMap<E extends { readonly id: string }> {
  #only: E | undefined;
  /** Undefined until a second entry is added; stays in use after entries are deleted. */
  #multiple: Map<string, E> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && (this.#multiple === undefined || this.#multiple.size === 0);
  }

  /** In the order of insertion. */
  values(): Iterable<E> {
    return this.#multiple?.values() ?? (this.#only === undefined ? [] : [this.#only]);
  }

  put(entry: E): void {
    const only = this.#only;
    if (this.#multiple !== undefined) this.#multiple.set(entry.id, entry);
    else if (only === undefined || only.id === entry.id) this.#only = entry;
    else {
      this.#multiple = new Map([only, entry].map((each) => [each.id, each]));
      this.#only = undefined;
    }
  }

  delete(id: string): void {
    this.#multiple?.delete(id);
    if (this.#only?.id === id) this.#only = undefined;
  }
}
