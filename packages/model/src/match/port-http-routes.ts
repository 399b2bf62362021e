import type { HttpRoute } from '../http/route.ts';
import type { HttpRouteEntry } from '../table/entry.ts';
import type { ListenerRoutes } from './listener-routes.ts';

/** The entries of HTTP routes for one port, and the shared listeners at this port, where these entries apply. A node has few such ports. */
export class PortHttpRoutes {
  /** By entry id. */
  readonly #routes = new Map<string, HttpRoute>();
  readonly #routesByHost = new Map<string, Map<string, HttpRoute>>();
  readonly #listeners = new Set<ListenerRoutes>();

  get isEmpty(): boolean {
    return this.#routes.size === 0 && this.#listeners.size === 0;
  }

  get hasRoutes(): boolean {
    return this.#routes.size > 0;
  }

  get all(): Iterable<HttpRoute> {
    return this.#routes.values();
  }

  /** Returns the routes that name a host or wildcard, in any order. */
  ofHost(host: string): Iterable<HttpRoute> {
    return this.#routesByHost.get(host)?.values() ?? [];
  }

  /** Does nothing if the listener was added before. */
  addListener(listener: ListenerRoutes): void {
    if (this.#listeners.has(listener)) return;
    this.#listeners.add(listener);
    listener.setHttpRoutes(this);
  }

  removeListener(listener: ListenerRoutes): void {
    this.#listeners.delete(listener);
  }

  put({ id, route: given }: HttpRouteEntry): void {
    // The ids of entries differ from the keys of the routes of Services, which are in the same routers.
    const route: HttpRoute = { ...given, id };
    this.#forget(id);
    this.#routes.set(id, route);
    for (const host of route.hosts) {
      const routes = this.#routesByHost.get(host);
      if (routes === undefined) this.#routesByHost.set(host, new Map([[id, route]]));
      else routes.set(id, route);
    }
    for (const listener of this.#listeners) listener.putHttpRoute(route);
  }

  remove(id: string): void {
    this.#forget(id);
    for (const listener of this.#listeners) listener.removeHttpRoute(id);
  }

  #forget(id: string): void {
    for (const host of this.#routes.get(id)?.hosts ?? []) {
      const routes = this.#routesByHost.get(host);
      if (routes?.delete(id) === true && routes.size === 0) this.#routesByHost.delete(host);
    }
    this.#routes.delete(id);
  }
}
