// The homes of all routes of a worker: kept by Service, so that whatever else changes its connections have what they had.
import { type ListenerKey, listenerKeyOf, type Matcher, type Route, type RouteKey } from '@weir/model/data-plane';
import type { Member } from '../relay/member.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { RouteHome, type RouteHomeOptions } from './route-home.ts';
import type { ServiceGroup } from './service-group.ts';
import type { ServiceGroups } from './service-groups.ts';

export interface RouteHomesOptions {
  readonly matcher: Matcher;
  readonly groups: Pick<ServiceGroups, 'join' | 'leave' | 'rename'>;
  readonly wheel: Pick<TimeoutWheel<Member>, 'now'>;
  /** To be asked for a route that is not here; true: it is here now. */
  readonly wake: (key: RouteKey) => boolean;
  /** What each home is made with. */
  readonly home: Omit<RouteHomeOptions, 'group'>;
}

/** A home that nobody has asked for yet: most of thousands of Services have no connection at the moment, or ever. */
interface Vacant {
  readonly route: Route;
  readonly group: ServiceGroup;
}

export class RouteHomes {
  readonly #options: RouteHomesOptions;
  readonly #homes = new Map<RouteKey, RouteHome | Vacant>();

  constructor(options: RouteHomesOptions) {
    this.#options = options;
  }

  /** Made for the first who asks: as it would have been since the route came, for a route that changes asks, too. */
  get(key: RouteKey): RouteHome | undefined {
    const found = this.#homes.get(key) ?? (this.#options.wake(key) ? this.#homes.get(key) : undefined);
    if (found === undefined || found instanceof RouteHome) return found;
    const home = new RouteHome(found.route, { ...this.#options.home, group: found.group });
    this.#homes.set(key, home);
    return home;
  }

  /** Of those who share a listener, the one that is known by this name; null: the client gives none. */
  find(listener: ListenerKey, serverName: string | null): RouteHome | undefined {
    const route = serverName === null ? undefined : this.#options.matcher.listeners.get(listener)?.find(serverName);
    return route && this.get(route.key);
  }

  /** These routes of the matcher have come, changed or gone. */
  follow(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#carryOver(key);
    for (const key of keys) this.#refresh(key);
  }

  /** Who had a listener alone and shares it now, or the other way round, is at home where its connections are. */
  #carryOver(key: RouteKey): void {
    const { routes, listeners } = this.#options.matcher;
    const home = routes.has(key) ? undefined : this.get(key);
    if (home === undefined) return;
    const next = listeners.get(listenerKeyOf(key))?.routeOf(home.group.service.uid);
    if (next === undefined || this.#homes.has(next.key)) return;
    this.#homes.delete(key);
    this.#homes.set(next.key, home);
  }

  #refresh(key: RouteKey): void {
    const { matcher, groups, wheel } = this.#options;
    const route = matcher.routes.get(key);
    const home = this.get(key);
    if (route !== undefined && home?.group.service.uid === route.service.uid) {
      home.update(route, wheel.now);
      groups.rename(home.group, route.service);
      return;
    }
    if (route === undefined) this.#homes.delete(key);
    else this.#homes.set(key, { route, group: groups.join(route.service) });
    if (home === undefined) return;
    home.leave(wheel.now);
    groups.leave(home.group);
  }
}
