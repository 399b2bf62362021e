import {
  type CertificateEntry,
  type EndpointsEntry,
  type Entry,
  type ListenerEntry,
  nodeId,
  type ServiceEntry,
} from '../table/entry.ts';
import { type Change, entryIdOf, type RoutingTable } from '../table/table.ts';
import { sharedResourceUses } from './atomic-groups.ts';
import { compileRoute, type SourceRangeCheck, sourceRangeCheckFor } from './compile-route.ts';
import { type ListenerRoutes, MutableListenerRoutes } from './listener-routes.ts';
import { type ListenerKey, listenerKeyOfRoute, type Route, type RouteKey, routeKey } from './route.ts';

// The table of one node, compiled for look-up. It is patched in place, because a copy would cost the size of the table
// for each change; the routes in it are immutable, so that open connections keep theirs. `createMatcher` is the
// reference: patching must lead to the same routes as compiling the changed table whole.
export interface Matcher {
  readonly node: string;
  readonly routes: ReadonlyMap<RouteKey, Route>;
  /** What is listened to, each with those of the routes that are of it. */
  readonly listeners: ReadonlyMap<ListenerKey, ListenerRoutes>;
}

/** Kept beside `routes` so that a change finds what it touches without a search. */
interface MutableMatcher extends Matcher {
  readonly routes: Map<RouteKey, Route>;
  readonly listeners: Map<ListenerKey, MutableListenerRoutes>;
  readonly entries: Map<string, Entry>;
  /** By Service UID. */
  readonly partsByService: Map<string, ServiceParts>;
  /** Of the node. */
  zone: string | null;
}

interface ServiceParts {
  service: ServiceEntry | undefined;
  certificate: CertificateEntry | undefined;
  sourceRangeCheck: SourceRangeCheck | undefined;
  readonly listeners: SmallEntryMap<ListenerEntry>;
  readonly endpoints: SmallEntryMap<EndpointsEntry>;
}

/** The routes of one node's listeners. */
export function createMatcher(table: RoutingTable, node: string): Matcher {
  const index: MutableMatcher = {
    node,
    routes: new Map(),
    listeners: new Map(),
    entries: new Map(),
    partsByService: new Map(),
    zone: null,
  };
  patchMatcher(
    index,
    [...table.entries.values()].map((entry) => ({ kind: 'put', entry })),
  );
  return index;
}

/** Makes the changes in place, in O(change); returns the keys of the routes that appeared, changed or went. */
export function patchMatcher(matcher: Matcher, changes: readonly Change[]): RouteKey[] {
  const index = matcher as MutableMatcher;
  const touched = new Set<string>();
  const gone = new Map<RouteKey, string>();
  const zone = zoneAfter(changes, index);
  if (zone !== index.zone) for (const uid of index.partsByService.keys()) touched.add(uid);
  index.zone = zone;
  for (const change of changes) {
    const old = index.entries.get(entryIdOf(change));
    if (old?.kind === 'listener') gone.set(routeKey(old), old.service);
    if (old !== undefined) touched.add(unlink(index, old));
    if (change.kind === 'put') touched.add(link(index, change.entry));
  }
  const changed = new Set<RouteKey>();
  for (const [key, service] of gone) {
    if (index.routes.get(key)?.service.uid === service && removeRoute(index, key)) changed.add(key);
  }
  for (const uid of touched) for (const key of recompile(index, uid)) changed.add(key);
  return [...changed].sort();
}

/**
 * Who has the listeners that these changes would take away from a Service, [entry id, Service UID]; and what else goes from hand to hand
 * by them, with each who has or gets it.
 */
export function movedResources(matcher: Matcher, changes: readonly Change[]): [what: string, service: string][] {
  const { node, entries, partsByService } = matcher as MutableMatcher;
  const listenersOf = (uid: string): Iterable<ListenerEntry> => partsByService.get(uid)?.listeners.values() ?? [];
  const holders: [what: string, service: string][] = [];
  for (const change of changes) {
    const old = entries.get(entryIdOf(change));
    if (old?.kind !== 'listener') continue;
    const stays = change.kind === 'put' && change.entry.kind === 'listener' && change.entry.service === old.service;
    if (!stays) holders.push([old.id, old.service]);
  }
  for (const [what, service] of sharedResourceUses(changes, { node, entries, listenersOf }))
    holders.push([what, service]);
  return holders;
}

function zoneAfter(changes: readonly Change[], { node, zone }: MutableMatcher): string | null {
  const id = nodeId(node);
  const last = changes.findLast((change) => entryIdOf(change) === id);
  if (last === undefined) return zone;
  return last.kind === 'put' && last.entry.kind === 'node' ? last.entry.zone : null;
}

/** Returns the UID of the Service that it belongs to; empty where routes do not depend on the entry. */
function link(index: MutableMatcher, entry: Entry): string {
  if (entry.kind === 'service') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.uid).service = entry;
    return entry.uid;
  }
  if (entry.kind === 'certificate') {
    index.entries.set(entry.id, entry);
    partsOf(index, entry.service).certificate = entry;
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
  return '';
}

function unlink(index: MutableMatcher, entry: Entry): string {
  index.entries.delete(entry.id);
  const uid = entry.kind === 'service' ? entry.uid : 'service' in entry ? entry.service : '';
  const parts = index.partsByService.get(uid);
  if (parts === undefined) return '';
  if (entry.kind === 'service') parts.service = undefined;
  else if (entry.kind === 'certificate') parts.certificate = undefined;
  else if (entry.kind === 'endpoints') parts.endpoints.delete(entry.id);
  else if (entry.kind === 'listener') parts.listeners.delete(entry.id);
  if (isEmptyPart(parts)) index.partsByService.delete(uid);
  return uid;
}

function isEmptyPart({ service, certificate, endpoints, listeners }: ServiceParts): boolean {
  return service === undefined && certificate === undefined && endpoints.isEmpty && listeners.isEmpty;
}

function partsOf(index: MutableMatcher, uid: string): ServiceParts {
  let parts = index.partsByService.get(uid);
  if (parts === undefined) {
    parts = {
      service: undefined,
      certificate: undefined,
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
  const { service, certificate } = parts;
  const ranges = service?.settings?.sourceRanges;
  const admission = ranges && sourceRangeCheckFor(ranges, parts.sourceRangeCheck);
  parts.sourceRangeCheck = admission;
  // Once for all of its listeners: it may have thousands, each with chunks of its own.
  const chunks = Map.groupBy(parts.endpoints.values(), portOf);
  const keys: RouteKey[] = [];
  for (const listener of parts.listeners.values()) {
    const key = routeKey(listener);
    keys.push(key);
    if (service !== undefined && admission !== undefined) {
      const given = {
        zone: index.zone,
        chunks: chunks.get(portOf(listener)) ?? [],
        sourceRangeCheck: admission,
        certificate,
      };
      putRoute(index, compileRoute(listener, service, given));
    } else removeRoute(index, key);
  }
  return keys;
}

function putRoute({ routes, listeners }: MutableMatcher, route: Route): void {
  routes.set(route.key, route);
  const key = listenerKeyOfRoute(route.key);
  const listener = listeners.get(key) ?? new MutableListenerRoutes();
  listeners.set(key, listener);
  listener.put(route);
}

/** Whether there was one. */
function removeRoute({ routes, listeners }: MutableMatcher, route: RouteKey): boolean {
  const key = listenerKeyOfRoute(route);
  const listener = listeners.get(key);
  listener?.remove(route);
  if (listener?.isEmpty === true) listeners.delete(key);
  return routes.delete(route);
}

function portOf({ protocol, port }: ListenerEntry | EndpointsEntry): string {
  return `${protocol}/${port}`;
}

/** Entries by id, of which there is mostly one: a map for each of thousands of Services would be larger than what is in it. */
export class SmallEntryMap<E extends { readonly id: string }> {
  #only: E | undefined;
  /** As soon as there were two at a time. */
  #multiple: Map<string, E> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && (this.#multiple === undefined || this.#multiple.size === 0);
  }

  /** In the order in which they came. */
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
