import type { Client } from './client.ts';
import type { Route } from './route.ts';

export type RouteRefusal = 'no-endpoints' | 'source-range';

/** Why a route takes nothing from this client; undefined: it does. Law: agrees with a linear search through the table. */
export function routeRefusalFor(route: Route, client: Pick<Client, 'address'>): RouteRefusal | undefined {
  if (!route.allowsSource(client)) return 'source-range';
  return route.endpoints.length === 0 ? 'no-endpoints' : undefined;
}
