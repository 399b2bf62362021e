import type { Route } from '../match/route.ts';
import type { Affinity } from '../settings/service-settings.ts';
import { type Balancer, type BalancerOptions, untriedEndpoints } from './balancer.ts';
import { hashClientAddress, hashClientFlow } from './hash.ts';
import { createClientAffinityBalancer, createMaglevBalancer, createRendezvousBalancer } from './hash-balancers.ts';
import {
  createLeastConnectionsBalancer,
  createRandomBalancer,
  createRoundRobinBalancer,
} from './weighted-balancers.ts';

/** What of a route a balancer is made for. */
export type BalancerRoute = Pick<Route, 'service' | 'listener' | 'settings'>;

/**
 * The balancer that a Service asks for. A UDP flow is always placed by its hash, whatever the algorithm says, because the
 * kernel may give its next datagram to another worker, which has to send it to the same endpoint.
 */
export function createBalancer(route: BalancerRoute, tools: BalancerOptions): Balancer {
  const { settings, listener } = route;
  if (settings.affinity.kind === 'client-ip')
    return createClientAffinityBalancer(route, settings.affinity.timeoutMs, tools);
  const isUdp = listener.protocol === 'UDP';
  if (usesMaglev(route)) return createMaglevBalancer(isUdp ? hashClientFlow : hashClientAddress);
  if (settings.algorithm === 'first') return FIRST_AVAILABLE_BALANCER;
  if (isUdp) return createRendezvousBalancer(hashClientFlow);
  switch (settings.algorithm) {
    case 'round-robin':
      return createRoundRobinBalancer(tools);
    case 'random':
      return createRandomBalancer(tools);
    default:
      return createLeastConnectionsBalancer(tools);
  }
}

/** Whether the main thread is to compute a table for its listener. */
export function usesMaglev({ settings }: Pick<Route, 'settings'>): boolean {
  return settings.algorithm === 'maglev' && settings.affinity.kind === 'none';
}

/** Whether a balancer made for the one serves the other of its listener: what it remembers is kept as long as possible. */
export function canKeepBalancer({ settings: a }: BalancerRoute, { settings: b }: BalancerRoute): boolean {
  if (a.affinity.kind === 'none' && b.affinity.kind === 'none') return a.algorithm === b.algorithm;
  return timeoutOf(a.affinity) === timeoutOf(b.affinity);
}

function timeoutOf(affinity: Affinity): number | undefined {
  return affinity.kind === 'client-ip' ? affinity.timeoutMs : undefined;
}

/**
 * The first of those that work, by address: the others are its reserve. Weights mean nothing here: one endpoint has
 * everything, or nothing.
 */
export const FIRST_AVAILABLE_BALANCER: Balancer = {
  choose: (pool, _client, tried) =>
    untriedEndpoints(pool.preferred, tried)[0] ?? untriedEndpoints(pool.fallback, tried)[0],
};
