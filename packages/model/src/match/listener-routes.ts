// The routes of one listener: the route of its exclusive Service, or the routes of the Services that share the listener, found by server
// name, or by the host and path of a request. Routes are patched in place, because thousands of Services may share a listener and a change
// usually affects only one of their routes.
import type { RoutedRequest, RouteMatch } from '../http/path-index.ts';
import type { PathUse } from '../http/request-target.ts';
import type { HttpRoute } from '../http/route.ts';
import { compileRouter, findRoute, patchRouter, type Router, usesPath } from '../http/router.ts';
import { httpRouteOf } from '../http/service-route.ts';
import type { ListenerEntry } from '../table/entry.ts';
import { findHost } from './hosts.ts';
import { type Route, type RouteKey, relaysHttp, routeKey, terminatingTlsPort } from './route.ts';

/**
 * Routes by host, sorted by key. A host has several routes if Services of one namespace share the host by path prefix, and while the changes
 * that move the host to another Service are not all applied yet. Services that share a host with TLS have the same CAs of client certificates.
 */
type RoutesByHost = Map<string, readonly Route[]>;

const NO_ROUTES: ReadonlyMap<RouteKey, Route> = new Map();

export class ListenerRoutes implements PathUse {
  #exclusive: Route | undefined;
  /** Created when a Service shares the listener. Most listeners have one exclusive Service and need no maps. */
  #shared: { readonly routes: Map<RouteKey, Route>; readonly owners: RoutesByHost } | undefined;
  /** The routes of HTTP requests. Created for the first request, because only workers need them. */
  #router: Router | undefined;
  /** The shared routes whose requests come without TLS. */
  readonly #plainHttp = new Set<RouteKey>();

  /** The route of the Service that gets all clients; undefined if Services share the listener. */
  get exclusive(): Route | undefined {
    return this.#exclusive;
  }

  /** The routes of the Services that share the listener. */
  get shared(): ReadonlyMap<RouteKey, Route> {
    return this.#shared?.routes ?? NO_ROUTES;
  }

  get isEmpty(): boolean {
    return this.#exclusive === undefined && this.shared.size === 0;
  }

  get isShared(): boolean {
    return this.#exclusive === undefined && this.shared.size > 0;
  }

  /** The listener entry of any of the routes: all routes have the same protocol, address and port. Throws if there is no route. */
  get listener(): ListenerEntry {
    const route = this.#exclusive ?? this.shared.values().next().value;
    if (route === undefined) throw new Error('the listener has no routes');
    return route.listener;
  }

  /** Whether Services that share the listener get HTTP requests without TLS. */
  get sharesPlainHttp(): boolean {
    return this.#plainHttp.size > 0;
  }

  /** Returns the first of `routesOf`. */
  findByServerName(serverName: string): Route | undefined {
    return this.routesOf(serverName)[0];
  }

  /** Returns the shared routes that own the server name, by key: several routes if Services share the name by path prefix. */
  routesOf(serverName: string): readonly Route[] {
    return (this.#shared && findHost(this.#shared.owners, serverName)) ?? [];
  }

  /** Returns the route that gets an HTTP request; undefined if no route matches the request. */
  findByRequest(request: RoutedRequest): RouteOfRequest | undefined {
    const match = findRoute(this.#compiledRouter(), request);
    if (match === undefined) return undefined;
    // `#compiledRouter` and `#patchRouter` add only routes of this kind.
    const found = match.route as ServiceHttpRoute;
    return { route: this.#exclusive ?? found.route, match, found };
  }

  /** Whether the Service of a request for this host depends on its path. */
  usesPath(host: string): boolean {
    return usesPath(this.#compiledRouter(), host);
  }

  #compiledRouter(): Router {
    this.#router ??= compileRouter(this.#all().filter(getsRequests).map(serviceHttpRouteOf));
    return this.#router;
  }

  /** Returns the route of the Service with this UID; undefined if the Service has no route at this listener. */
  routeOfService(service: string): Route | undefined {
    if (this.#exclusive?.service.uid === service) return this.#exclusive;
    return this.shared.get(routeKey({ ...this.listener, service, shared: true }));
  }

  put(route: Route): void {
    this.#patchRouter(route.key, getsRequests(route) ? [route] : []);
    if (route.listener.shared !== true) {
      this.#exclusive = route;
      return;
    }
    this.#shared ??= { routes: new Map(), owners: new Map() };
    const { routes, owners } = this.#shared;
    this.#releaseHosts(route.key);
    routes.set(route.key, route);
    if (relaysHttp(route) && terminatingTlsPort(route) === undefined) this.#plainHttp.add(route.key);
    else this.#plainHttp.delete(route.key);
    for (const host of route.settings.hosts) {
      const others = owners.get(host) ?? [];
      // Sorted by key, so that the owner does not depend on the order of changes.
      owners.set(host, others.length === 0 ? [route] : [...others, route].sort(byKey));
    }
  }

  remove(key: RouteKey): void {
    this.#patchRouter(key, []);
    this.#plainHttp.delete(key);
    if (this.#exclusive?.key === key) this.#exclusive = undefined;
    this.#releaseHosts(key);
    this.#shared?.routes.delete(key);
  }

  #all(): Route[] {
    return this.#exclusive === undefined ? [...this.shared.values()] : [this.#exclusive];
  }

  #patchRouter(removed: RouteKey, put: readonly Route[]): void {
    if (this.#router !== undefined) patchRouter(this.#router, { removed: [removed], put: put.map(serviceHttpRouteOf) });
  }

  #releaseHosts(key: RouteKey): void {
    if (this.#shared === undefined) return;
    const { routes, owners } = this.#shared;
    for (const host of routes.get(key)?.settings.hosts ?? []) {
      const others = (owners.get(host) ?? []).filter((route) => route.key !== key);
      if (others.length === 0) owners.delete(host);
      else owners.set(host, others);
    }
  }
}

/** The route of a request, and the condition that the request has met. */
export interface RouteOfRequest {
  readonly route: Route;
  readonly match: RouteMatch;
  /** The same object for all requests of `route`. A worker keeps there what it has found for the route. */
  readonly found: { kept: object | undefined };
}

/** The HTTP route of a Service. Leads to the Service's route without a look-up, which would cost several cache misses. */
interface ServiceHttpRoute extends HttpRoute {
  readonly route: Route;
  kept: object | undefined;
}

function serviceHttpRouteOf(route: Route): ServiceHttpRoute {
  return { ...httpRouteOf(route), route, kept: undefined };
}

/** Whether requests are routed to the Service. A Service without hosts must never get the requests of other Services on a shared port. */
function getsRequests(route: Route): boolean {
  return relaysHttp(route) && (route.listener.shared !== true || route.settings.hosts.length > 0);
}

function byKey(a: Route, b: Route): number {
  return a.key < b.key ? -1 : 1;
}
