// The routes of one listener: of the Service that has it alone, or of those that share it, found by the server name. Patched in
// place, because thousands may share one, and a change is of one of them.
import type { ListenerEntry } from '../table/entry.ts';
import { findHost } from './hosts.ts';
import { type Route, type RouteKey, routeKey } from './route.ts';

export interface ListenerRoutes {
  /** Where to listen. */
  readonly at: ListenerEntry;
  /** Of who has all clients; undefined: it is shared. */
  readonly alone: Route | undefined;
  readonly isShared: boolean;
  /** Of those who share it. */
  readonly shares: ReadonlyMap<RouteKey, Route>;
  /** Of those who share it, the one whose client asks for this name. */
  find(serverName: string): Route | undefined;
  /** Of this Service. */
  routeOf(service: string): Route | undefined;
}

export class PatchedListenerRoutes implements ListenerRoutes {
  alone: Route | undefined;
  readonly shares: Map<RouteKey, Route> = new Map();
  /** By host; the first has it: there is a second one only while changes are made one after the other. */
  readonly #owners = new Map<string, readonly Route[]>();

  get isEmpty(): boolean {
    return this.alone === undefined && this.shares.size === 0;
  }

  get isShared(): boolean {
    return this.alone === undefined && this.shares.size > 0;
  }

  get at(): ListenerEntry {
    const route = this.alone ?? this.shares.values().next().value;
    if (route === undefined) throw new Error('a listener without routes is none');
    return route.listener;
  }

  find(serverName: string): Route | undefined {
    return findHost(this.#owners, serverName)?.[0];
  }

  routeOf(service: string): Route | undefined {
    if (this.alone?.service.uid === service) return this.alone;
    return this.shares.get(routeKey({ ...this.at, service, shared: true }));
  }

  put(route: Route): void {
    if (route.listener.shared !== true) {
      this.alone = route;
      return;
    }
    this.#leaveHosts(route.key);
    this.shares.set(route.key, route);
    for (const host of route.settings.hosts) {
      const others = this.#owners.get(host) ?? [];
      // By key, so that nothing depends on history.
      this.#owners.set(host, others.length === 0 ? [route] : [...others, route].sort(byKey));
    }
  }

  remove(key: RouteKey): void {
    if (this.alone?.key === key) this.alone = undefined;
    this.#leaveHosts(key);
    this.shares.delete(key);
  }

  #leaveHosts(key: RouteKey): void {
    for (const host of this.shares.get(key)?.settings.hosts ?? []) {
      const others = (this.#owners.get(host) ?? []).filter((route) => route.key !== key);
      if (others.length === 0) this.#owners.delete(host);
      else this.#owners.set(host, others);
    }
  }
}

function byKey(a: Route, b: Route): number {
  return a.key < b.key ? -1 : 1;
}
