import type { Protocol } from '../table/entry.ts';
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
  if (!route.admits(arrival.source)) return { kind: 'refused', reason: 'source-range' };
  if (route.endpoints.length === 0) return { kind: 'refused', reason: 'no-endpoints' };
  return { kind: 'route', route };
}
