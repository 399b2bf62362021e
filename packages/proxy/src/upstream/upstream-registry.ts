// The upstreams of all routes of a worker. When a route changes but its Service does not, the upstream stays, so that
// the upstream's open connections remain counted.
import { type ListenerKey, listenerKeyOfRoute, type Matcher, type Route, type RouteKey } from '@weir/model/data-plane';
import type { ServiceSessions, ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { Upstream, type UpstreamOptions } from './upstream.ts';

export interface UpstreamRegistryOptions {
  readonly matcher: Matcher;
  readonly services: Pick<ServiceSessionsRegistry, 'addListener' | 'removeListener' | 'updateService'>;
  readonly wheel: Pick<TimeoutWheel<Session>, 'now'>;
  /** Loads a route that is not in the registry yet. Returns whether the registry contains the route now. */
  readonly loadLazyRoute: (key: RouteKey) => boolean;
  /** The options that all upstreams share. */
  readonly upstreamOptions: Omit<UpstreamOptions, 'service'>;
}

/** A route whose upstream is created on first use, because most of thousands of Services have no connections. */
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

  /**
   * Returns the upstream of a route, and creates the upstream on first use. An upstream that does not exist yet misses
   * no change, because `applyChanges` calls `get` too.
   */
  get(key: RouteKey): Upstream | undefined {
    const found = this.#upstreams.get(key) ?? (this.#options.loadLazyRoute(key) ? this.#upstreams.get(key) : undefined);
    if (found === undefined || found instanceof Upstream) return found;
    const upstream = new Upstream(found.route, { ...this.#options.upstreamOptions, service: found.service });
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  /**
   * Returns the upstreams on a shared listener that serve this server name: several if Services share the name by path
   * prefix. `serverName` is null if the client sent none.
   */
  allByServerName(listener: ListenerKey, serverName: string | null): readonly Upstream[] {
    const routes =
      serverName === null ? undefined : this.#options.matcher.listeners.get(listener)?.routesOf(serverName);
    return (routes ?? []).flatMap(({ key }) => this.get(key) ?? []);
  }

  /** Must be called after the routes with these keys were added to the matcher, changed or removed. */
  applyChanges(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#moveToNewKey(key);
    for (const key of keys) this.#refresh(key);
  }

  /**
   * Moves an upstream, with its connections, to the new key of its route. The key of a route changes when its listener
   * becomes shared or exclusive.
   */
  #moveToNewKey(key: RouteKey): void {
    const { routes, listeners } = this.#options.matcher;
    const upstream = routes.has(key) ? undefined : this.get(key);
    if (upstream === undefined) return;
    const next = listeners.get(listenerKeyOfRoute(key))?.routeOfService(upstream.service.entry.uid);
    if (next === undefined || this.#upstreams.has(next.key)) return;
    this.#upstreams.delete(key);
    this.#upstreams.set(next.key, upstream);
  }

  #refresh(key: RouteKey): void {
    const { matcher, services, wheel } = this.#options;
    const route = matcher.routes.get(key);
    const upstream = this.get(key);
    if (route !== undefined && upstream?.service.entry.uid === route.service.uid) {
      upstream.update(route, wheel.now);
      services.updateService(upstream.service, route.service);
      return;
    }
    if (route === undefined) this.#upstreams.delete(key);
    else this.#upstreams.set(key, { route, service: services.addListener(route.service) });
    if (upstream === undefined) return;
    upstream.close(wheel.now);
    services.removeListener(upstream.service);
  }
}
