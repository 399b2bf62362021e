// Finds the route of a request. `patchRouter` changes a router in place, and the routes of one host are compiled when the first request for
// this host arrives. So a change costs only the hosts that the changed routes name.
import { compilePaths, findByPath, type PathIndex, type RoutedRequest, type RouteMatch } from './path-index.ts';
import type { HttpRoute } from './route.ts';

/** Routes, found by host, path and the conditions of their matches. */
export interface Router {
  /** By id. */
  readonly routes: ReadonlyMap<string, HttpRoute>;
}

interface MutableRouter extends Router {
  readonly routes: Map<string, HttpRoute>;
  /** By exact host. */
  readonly hosts: Map<string, HostRoutes>;
  /** By the part of the wildcard after the asterisk: `.example.com`. */
  readonly wildcards: Map<string, HostRoutes>;
  /** The routes without hosts, for requests whose host no other route names. */
  readonly defaults: HostRoutes;
  /** The result of the last look-up by host, because each request looks up its host twice. */
  last: { readonly name: string; readonly paths: PathIndex } | undefined;
}

interface HostRoutes {
  /** By id. */
  readonly routes: Map<string, HttpRoute>;
  /** Undefined until a request needs the routes. */
  paths: PathIndex | undefined;
}

export interface RouterPatch {
  /** Ids of routes that are removed, if they exist, before `put` is applied. */
  readonly removed: readonly string[];
  /** Routes that are added, or that replace the route with the same id. */
  readonly put: readonly HttpRoute[];
}

/** Returns a router for valid routes (see `httpRouteMistakes`). Of several routes with the same id the last one counts. */
export function compileRouter(routes: readonly HttpRoute[]): Router {
  const router: MutableRouter = {
    routes: new Map(),
    hosts: new Map(),
    wildcards: new Map(),
    defaults: { routes: new Map(), paths: undefined },
    last: undefined,
  };
  patchRouter(router, { removed: [], put: routes });
  return router;
}

/**
 * Changes a router in place. Costs O(1) for each host of each changed route. Invariant: a patched router finds the same routes as a router
 * that `compileRouter` returns for the same routes.
 */
export function patchRouter(router: Router, { removed, put }: RouterPatch): void {
  const index = router as MutableRouter;
  index.last = undefined;
  for (const id of removed) unlink(index, id);
  for (const route of put) {
    unlink(index, route.id);
    index.routes.set(route.id, route);
    for (const key of hostKeys(route)) {
      const host = hostRoutes(index, key) ?? addHost(index, key);
      host.routes.set(route.id, route);
      host.paths = undefined;
    }
  }
}

/**
 * Returns the match that gets the request, or undefined. The most specific host decides: an exact host, then a wildcard for the first label,
 * then the routes without hosts. If none of the routes of the most specific host fits, no less specific host gets the request, because
 * another tenant may own that host. Then the precedence of `findByPath` decides.
 */
export function findRoute(router: Router, request: RoutedRequest): RouteMatch | undefined {
  return findByPath(pathsOf(router, request.host), request);
}

/** Whether a route of the host uses the path of a request. Otherwise `findRoute` finds the same route for all paths. */
export function usesPath(router: Router, host: string): boolean {
  return pathsOf(router, host).usesPath;
}

function pathsOf(router: Router, name: string): PathIndex {
  const index = router as MutableRouter;
  if (index.last?.name === name) return index.last.paths;
  const host = hostRoutesOf(index, name);
  host.paths ??= compilePaths([...host.routes.values()]);
  index.last = { name, paths: host.paths };
  return host.paths;
}

function hostRoutesOf({ hosts, wildcards, defaults }: MutableRouter, host: string): HostRoutes {
  const exact = hosts.get(host);
  if (exact !== undefined) return exact;
  if (wildcards.size === 0) return defaults;
  const dot = host.indexOf('.');
  return (dot > 0 ? wildcards.get(host.slice(dot)) : undefined) ?? defaults;
}

/** The key of routes without hosts. No host has this name. */
const ANY_HOST = '*';

function hostKeys({ hosts }: HttpRoute): readonly string[] {
  return hosts.length === 0 ? [ANY_HOST] : hosts;
}

/** Returns the routes of a host or wildcard; undefined if no route names the host or wildcard. */
function hostRoutes(router: MutableRouter, key: string): HostRoutes | undefined {
  if (key === ANY_HOST) return router.defaults;
  return key.startsWith('*') ? router.wildcards.get(key.slice(1)) : router.hosts.get(key);
}

function addHost(router: MutableRouter, key: string): HostRoutes {
  const host: HostRoutes = { routes: new Map(), paths: undefined };
  if (key.startsWith('*')) router.wildcards.set(key.slice(1), host);
  else router.hosts.set(key, host);
  return host;
}

function unlink(router: MutableRouter, id: string): void {
  const route = router.routes.get(id);
  if (route === undefined) return;
  router.routes.delete(id);
  for (const key of hostKeys(route)) {
    const host = hostRoutes(router, key);
    if (host === undefined) continue;
    host.routes.delete(id);
    host.paths = undefined;
    if (host.routes.size > 0 || key === ANY_HOST) continue;
    if (key.startsWith('*')) router.wildcards.delete(key.slice(1));
    else router.hosts.delete(key);
  }
}
