// The routes of one listener: the route of its exclusive Service, or the routes of the Services that share the listener, found by server
// name, or by the host and path of a request. Routes are patched in place, because thousands of Services may share a listener and a change
// usually affects only one of their routes.
import { chooseBackend } from '../http/backend-choice.ts';
import { compareAge } from '../http/host-owners.ts';
import type { RoutedRequest } from '../http/path-index.ts';
import type { PathUse } from '../http/request-target.ts';
import type { HttpRoute } from '../http/route.ts';
import { compileRouter, findRoute, patchRouter, type Router, usesPath } from '../http/router.ts';
import type { ListenerEntry } from '../table/entry.ts';
import { findHost } from './hosts.ts';
import {
  type BackendTarget,
  backendHttpRoute,
  type ListenerHttpRoute,
  NO_BACKEND,
  type RouteOfRequest,
  serviceHttpRoute,
} from './listener-http-route.ts';
import type { PortHttpRoutes } from './port-http-routes.ts';
import {
  backendRouteKey,
  isBackend,
  type ListenerKey,
  type Route,
  type RouteKey,
  relaysHttp,
  terminatingTlsPort,
} from './route.ts';

/**
 * Routes by host, sorted by key. A host has several routes if Services of one namespace share the host by path prefix, and while the changes
 * that move the host to another Service are not all applied yet. Services that share a host with TLS have the same CAs of client certificates.
 */
type RoutesByHost = Map<string, readonly Route[]>;

const NO_ROUTES: ReadonlyMap<RouteKey, Route> = new Map();

export class ListenerRoutes implements PathUse {
  readonly key: ListenerKey;
  #exclusive: Route | undefined;
  /** Created when a Service shares the listener. Most listeners have one exclusive Service and need no maps. */
  #shared: { readonly routes: Map<RouteKey, Route>; readonly owners: RoutesByHost } | undefined;
  /** The routes of HTTP requests. Created for the first request, because only workers need them. */
  #router: Router | undefined;
  /** The shared routes whose requests come without TLS. */
  readonly #plainHttp = new Set<RouteKey>();
  /** The entries of HTTP routes. Undefined if the listener has an exclusive Service. */
  #httpRoutes: PortHttpRoutes | undefined;
  /**
   * The results of `#ownersOf` since the last change, because each TLS handshake needs the owners of a host, and the routes of a host may
   * name thousands of backends. Created when HTTP routes name a host.
   */
  #ownersByHost: Map<string, readonly Route[]> | undefined;

  constructor(key: ListenerKey) {
    this.key = key;
  }

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

  /**
   * Returns the shared routes that own the server name, by key: several routes if Services share the name by path prefix, or if HTTP routes
   * send the requests for the name to several backends.
   */
  routesOf(serverName: string): readonly Route[] {
    if (this.#shared === undefined) return [];
    const { owners } = this.#shared;
    const httpRoutes = this.#httpRoutes;
    if (httpRoutes?.hasRoutes !== true) return findHost(owners, serverName) ?? [];
    return findHost({ get: (host) => this.#ownersOf(host, owners, httpRoutes) }, serverName) ?? [];
  }

  /** Returns the routes of the Services and backends of the tenant that owns the host; undefined if no route names the host. */
  #ownersOf(host: string, owners: RoutesByHost, httpRoutes: PortHttpRoutes): readonly Route[] | undefined {
    const known = this.#ownersByHost?.get(host);
    if (known !== undefined) return known;
    const services = owners.get(host) ?? [];
    const naming = [...httpRoutes.ofHost(host)].sort(compareAge);
    if (services.length === 0 && naming.length === 0) return undefined;
    // The same owner as in the router: routes that annotations make are the oldest, see `httpRouteOf`.
    const tenant = services[0]?.service.tenant ?? naming[0]?.tenant;
    const found = new Map(services.map((route) => [route.key, route]));
    for (const route of naming) {
      if (route.tenant !== tenant) continue;
      for (const { service, port } of route.backends) {
        const backend = this.#backendRoute(backendRouteKey(this.key, service, port), tenant);
        if (backend !== undefined) found.set(backend.key, backend);
      }
    }
    const sorted = [...found.values()].sort(byKey);
    this.#ownersByHost ??= new Map();
    this.#ownersByHost.set(host, sorted);
    return sorted;
  }

  /**
   * Returns the route that gets an HTTP request; undefined if no HTTP route matches the request. `random` returns numbers in [0, 1), which
   * choose among backends. `chosen` is what an earlier call has chosen for the same request; undefined if there was none.
   */
  findByRequest(request: RoutedRequest, random: () => number, chosen?: RouteKey): RouteOfRequest | undefined {
    const match = findRoute(this.#compiledRouter(), request);
    if (match === undefined) return undefined;
    // `#compiledRouter` and `#patchRouter` add only routes of this kind.
    const found = match.route as ListenerHttpRoute;
    if (found.route !== undefined) return { route: this.#exclusive ?? found.route, match, target: found };
    const target = targetWithKey(found, chosen) ?? chooseBackend(found.targets, random()) ?? NO_BACKEND;
    return { route: this.#backendRoute(target.key, found.tenant), match, target };
  }

  /** Returns the route to a backend; undefined if the backend does not exist, or belongs to another tenant than the HTTP route. */
  #backendRoute(key: RouteKey, tenant: string): Route | undefined {
    const route = this.shared.get(key);
    return route?.service.tenant === tenant ? route : undefined;
  }

  /** Whether a route of this host uses the path of a request. */
  usesPath(host: string): boolean {
    return usesPath(this.#compiledRouter(), host);
  }

  #compiledRouter(): Router {
    if (this.#router !== undefined) return this.#router;
    const ofServices = this.#all().filter(getsRequests).map(serviceHttpRoute);
    const ofEntries = [...(this.#httpRoutes?.all ?? [])].map((route) => backendHttpRoute(route, this.key));
    this.#router = compileRouter([...ofServices, ...ofEntries]);
    return this.#router;
  }

  /** Returns the route of the Service with this UID; undefined if the Service has no route at this listener, or only as a backend. */
  routeOfService(service: string): Route | undefined {
    if (this.#exclusive?.service.uid === service) return this.#exclusive;
    return this.shared.get(`${this.key}/${service}`);
  }

  put(route: Route): void {
    this.#patchRouter(route.key, getsRequests(route) ? [serviceHttpRoute(route)] : []);
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
    if (isBackend(route)) return;
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

  /** Sets the entries of HTTP routes. `putHttpRoute` and `removeHttpRoute` report later changes. */
  setHttpRoutes(routes: PortHttpRoutes): void {
    this.#httpRoutes = routes;
    this.#router = undefined;
    this.#ownersByHost = undefined;
  }

  putHttpRoute(route: HttpRoute): void {
    this.#patchRouter(route.id, [backendHttpRoute(route, this.key)]);
  }

  removeHttpRoute(id: string): void {
    this.#patchRouter(id, []);
  }

  #all(): Route[] {
    return this.#exclusive === undefined ? [...this.shared.values()] : [this.#exclusive];
  }

  /** Must be called with each change of a route. */
  #patchRouter(removed: string, put: readonly ListenerHttpRoute[]): void {
    this.#ownersByHost = undefined;
    if (this.#router !== undefined) patchRouter(this.#router, { removed: [removed], put });
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

/** Whether requests are routed to the Service. A Service without hosts must never get the requests of other Services on a shared port. */
function getsRequests(route: Route): boolean {
  return relaysHttp(route) && !isBackend(route) && (route.listener.shared !== true || route.settings.hosts.length > 0);
}

/** Returns the target with this key, if it still gets requests. */
function targetWithKey({ targets }: ListenerHttpRoute, key: RouteKey | undefined): BackendTarget | undefined {
  return key === undefined ? undefined : targets.find((target) => target.key === key && target.weight > 0);
}

function byKey(a: Route, b: Route): number {
  return a.key < b.key ? -1 : 1;
}
