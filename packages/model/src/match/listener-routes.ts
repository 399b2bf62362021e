// The routes of one listener: of the Service that has it alone, or of those that share it, found by the server name. Patched in
// place, because thousands may share one, and a change is of one of them.
import type { ListenerEntry } from '../table/entry.ts';
import { findHost } from './hosts.ts';
import { type Route, type RouteKey, routeKey } from './route.ts';

export interface ListenerRoutes {
  /** Where to listen. */
  readonly listener: ListenerEntry;
  /** Of who has all clients; undefined: it is shared. */
  readonly exclusive: Route | undefined;
  readonly isShared: boolean;
  /** Of those who share it. */
  readonly shared: ReadonlyMap<RouteKey, Route>;
  /** Of those who share it, the one whose client asks for this name. */
  findByServerName(serverName: string): Route | undefined;
  /** Of this Service. */
  routeOfService(service: string): Route | undefined;
}

/** By host; the first has it: there is a second one only while changes are made one after the other. */
type RoutesByHost = Map<string, readonly Route[]>;

const NO_ROUTES: ReadonlyMap<RouteKey, Route> = new Map();

export class MutableListenerRoutes implements ListenerRoutes {
  exclusive: Route | undefined;
  /** Made when somebody shares it: most of thousands of listeners are of one Service. */
  #shared: { readonly routes: Map<RouteKey, Route>; readonly owners: RoutesByHost } | undefined;

  get shared(): ReadonlyMap<RouteKey, Route> {
    return this.#shared?.routes ?? NO_ROUTES;
  }

  get isEmpty(): boolean {
    return this.exclusive === undefined && this.shared.size === 0;
  }

  get isShared(): boolean {
    return this.exclusive === undefined && this.shared.size > 0;
  }

  get listener(): ListenerEntry {
    const route = this.exclusive ?? this.shared.values().next().value;
    if (route === undefined) throw new Error('a listener without routes is none');
    return route.listener;
  }

  findByServerName(serverName: string): Route | undefined {
    return this.#shared && findHost(this.#shared.owners, serverName)?.[0];
  }

  routeOfService(service: string): Route | undefined {
    if (this.exclusive?.service.uid === service) return this.exclusive;
    return this.shared.get(routeKey({ ...this.listener, service, shared: true }));
  }

  put(route: Route): void {
    if (route.listener.shared !== true) {
      this.exclusive = route;
      return;
    }
    this.#shared ??= { routes: new Map(), owners: new Map() };
    const { routes, owners } = this.#shared;
    this.#leaveHosts(route.key);
    routes.set(route.key, route);
    for (const host of route.settings.hosts) {
      const others = owners.get(host) ?? [];
      // By key, so that nothing depends on history.
      owners.set(host, others.length === 0 ? [route] : [...others, route].sort(byKey));
    }
  }

  remove(key: RouteKey): void {
    if (this.exclusive?.key === key) this.exclusive = undefined;
    this.#leaveHosts(key);
    this.#shared?.routes.delete(key);
  }

  #leaveHosts(key: RouteKey): void {
    if (this.#shared === undefined) return;
    const { routes, owners } = this.#shared;
    for (const host of routes.get(key)?.settings.hosts ?? []) {
      const others = (owners.get(host) ?? []).filter((route) => route.key !== key);
      if (others.length === 0) owners.delete(host);
      else owners.set(host, others);
    }
  }
}

function byKey(a: Route, b: Route): number {
  return a.key < b.key ? -1 : 1;
}
