import type { Protocol } from '../table/entry.ts';
import type { Client } from './client.ts';
import type { Matcher } from './matcher.ts';
import { listenerKey, type Route } from './route.ts';

/** A connection that arrived: the listener's side and the client's address. */
export interface Arrival {
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
  readonly source: string;
}

export type Match =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'refused'; readonly reason: MatchRefusal };

export type MatchRefusal = 'no-listener' | 'no-endpoints' | 'source-range';

/** Where an arrival goes, or why nowhere. Law: agrees with a linear search through the table. */
export function match(matcher: Matcher, arrival: Arrival): Match {
  const route = matcher.routes.get(listenerKey(arrival));
  if (route === undefined) return { kind: 'refused', reason: 'no-listener' };
  const reason = refusalFor(route, { address: arrival.source });
  return reason === undefined ? { kind: 'route', route } : { kind: 'refused', reason };
}

/** Why a route takes nothing from this client; for those who know their listener's route. */
export function refusalFor(route: Route, client: Pick<Client, 'address'>): MatchRefusal | undefined {
  if (!route.admits(client)) return 'source-range';
  return route.endpoints.length === 0 ? 'no-endpoints' : undefined;
}
