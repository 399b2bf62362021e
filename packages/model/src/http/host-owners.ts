import { compareText } from '../compare.ts';
import type { HttpRoute } from './route.ts';

/** A route that does not get a host, because another tenant owns the host. */
export interface HostConflict {
  readonly host: string;
  readonly route: HttpRoute;
  /** The route by which the other tenant owns the host. */
  readonly owner: HttpRoute;
}

export interface HostOwners {
  /** Names of the tenants by host. */
  readonly tenants: ReadonlyMap<string, string>;
  /** Sorted by host, then by the precedence of the routes. */
  readonly conflicts: readonly HostConflict[];
}

/**
 * Decides which tenant owns each host: the tenant of the oldest route that names the host. All routes of this tenant share the host's paths.
 * A host and a wildcard that matches this host are different hosts, so two tenants can own them.
 */
export function hostOwners(routes: readonly HttpRoute[]): HostOwners {
  const routesByHost = new Map<string, HttpRoute[]>();
  for (const route of [...routes].sort(compareAge)) {
    for (const host of route.hosts) {
      const others = routesByHost.get(host);
      if (others === undefined) routesByHost.set(host, [route]);
      else others.push(route);
    }
  }
  const tenants = new Map<string, string>();
  const conflicts: HostConflict[] = [];
  for (const [host, candidates] of [...routesByHost].sort(([a], [b]) => compareText(a, b))) {
    const owner = candidates[0] as HttpRoute;
    tenants.set(host, owner.tenant);
    for (const route of candidates) if (route.tenant !== owner.tenant) conflicts.push({ host, route, owner });
  }
  return { tenants, conflicts };
}

/** Orders routes by age, then by id. The first of several routes owns a host. */
export function compareAge(a: HttpRoute, b: HttpRoute): number {
  return a.createdAt - b.createdAt || compareText(a.id, b.id);
}
