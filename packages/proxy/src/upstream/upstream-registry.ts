// The homes of all routes of a worker: kept by Service, so that whatever else changes its connections have what they had.
import { type ListenerKey, listenerKeyOfRoute, type Matcher, type Route, type RouteKey } from '@weir/model/data-plane';
import type { ServiceSessions, ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { Upstream, type UpstreamOptions } from './upstream.ts';

export interface UpstreamRegistryOptions {
  readonly matcher: Matcher;
  readonly services: Pick<ServiceSessionsRegistry, 'addListener' | 'removeListener' | 'updateService'>;
  readonly wheel: Pick<TimeoutWheel<Session>, 'now'>;
  /** To be asked for a route that is not here; true: it is here now. */
  readonly loadLazyRoute: (key: RouteKey) => boolean;
  /** What each home is made with. */
  readonly upstreamOptions: Omit<UpstreamOptions, 'service'>;
}

/** A home that nobody has asked for yet: most of thousands of Services have no connection at the moment, or ever. */
interface LazyUpstream {
  readonly route: Route;
  readonly service: ServiceSessions;
}

export class UpstreamRegistry {
  readonly #options: UpstreamRegistryOptions;
  readonly #upstreams = new Map<RouteKey, Upstream | LazyUpstream>();

  constructor(options: UpstreamRegistryOptions) {
    this.#options = options;
  }

  /** Made for the first who asks: as it would have been since the route came, for a route that changes asks, too. */
  get(key: RouteKey): Upstream | undefined {
    const found = this.#upstreams.get(key) ?? (this.#options.loadLazyRoute(key) ? this.#upstreams.get(key) : undefined);
    if (found === undefined || found instanceof Upstream) return found;
    const home = new Upstream(found.route, { ...this.#options.upstreamOptions, service: found.service });
    this.#upstreams.set(key, home);
    return home;
  }

  /** Of those who share a listener, the one that is known by this name; null: the client gives none. */
  findByServerName(listener: ListenerKey, serverName: string | null): Upstream | undefined {
    const route =
      serverName === null ? undefined : this.#options.matcher.listeners.get(listener)?.findByServerName(serverName);
    return route && this.get(route.key);
  }

  /** These routes of the matcher have come, changed or gone. */
  applyChanges(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#moveToNewKey(key);
    for (const key of keys) this.#refresh(key);
  }

  /** Who had a listener alone and shares it now, or the other way round, is at home where its connections are. */
  #moveToNewKey(key: RouteKey): void {
    const { routes, listeners } = this.#options.matcher;
    const home = routes.has(key) ? undefined : this.get(key);
    if (home === undefined) return;
    const next = listeners.get(listenerKeyOfRoute(key))?.routeOfService(home.service.entry.uid);
    if (next === undefined || this.#upstreams.has(next.key)) return;
    this.#upstreams.delete(key);
    this.#upstreams.set(next.key, home);
  }

  #refresh(key: RouteKey): void {
    const { matcher, services, wheel } = this.#options;
    const route = matcher.routes.get(key);
    const home = this.get(key);
    if (route !== undefined && home?.service.entry.uid === route.service.uid) {
      home.update(route, wheel.now);
      services.updateService(home.service, route.service);
      return;
    }
    if (route === undefined) this.#upstreams.delete(key);
    else this.#upstreams.set(key, { route, service: services.addListener(route.service) });
    if (home === undefined) return;
    home.close(wheel.now);
    services.removeListener(home.service);
  }
}
