import type { Route } from '../match/route.ts';
import type { Affinity } from '../settings/service-settings.ts';
import { type Balancer, type BalancerOptions, untriedFrom } from './balancer.ts';
import { hashClientAddress, hashClientFlow } from './hash.ts';
import { createClientAffinityBalancer, createMaglevBalancer, createRendezvousBalancer } from './hash-balancers.ts';
import {
  createLeastConnectionsBalancer,
  createRandomBalancer,
  createRoundRobinBalancer,
} from './weighted-balancers.ts';

export type BalancerRoute = Pick<Route, 'service' | 'listener' | 'settings'>;

/**
 * Creates the balancer that the settings of a Service ask for. For UDP flows, a hash replaces round-robin, random and least-connections,
 * because the kernel may deliver the next datagram of a flow to another worker, and that worker must choose the same endpoint.
 */
export function createBalancer(route: BalancerRoute, options: BalancerOptions): Balancer {
  const { settings, listener } = route;
  if (settings.affinity.kind === 'client-ip')
    return createClientAffinityBalancer(route, settings.affinity.timeoutMs, options);
  const isUdp = listener.protocol === 'UDP';
  if (usesMaglev(route)) return createMaglevBalancer(isUdp ? hashClientFlow : hashClientAddress);
  if (settings.algorithm === 'first') return FIRST_AVAILABLE_BALANCER;
  if (isUdp) return createRendezvousBalancer(hashClientFlow);
  switch (settings.algorithm) {
    case 'round-robin':
      return createRoundRobinBalancer(options);
    case 'random':
      return createRandomBalancer(options);
    default:
      return createLeastConnectionsBalancer(options);
  }
}

/** Whether the balancer of a route needs a Maglev table. The main thread computes the table. */
export function usesMaglev({ settings }: Pick<Route, 'settings'>): boolean {
  return settings.algorithm === 'maglev' && settings.affinity.kind === 'none';
}

/** Whether a balancer that was created for the first route also fits the second route. If so, the balancer keeps its state. */
export function canKeepBalancer({ settings: a }: BalancerRoute, { settings: b }: BalancerRoute): boolean {
  if (a.affinity.kind === 'none' && b.affinity.kind === 'none') return a.algorithm === b.algorithm;
  return timeoutOf(a.affinity) === timeoutOf(b.affinity);
}

function timeoutOf(affinity: Affinity): number | undefined {
  return affinity.kind === 'client-ip' ? affinity.timeoutMs : undefined;
}

/**
 * Chooses the first untried endpoint in order of address: from the preferred endpoints, or from the fallback endpoints if all preferred
 * endpoints were tried. Ignores slow start.
 */
export const FIRST_AVAILABLE_BALANCER: Balancer = {
  choose: (pool, _client, tried) => untriedFrom(pool.preferred, 0, tried) ?? untriedFrom(pool.fallback, 0, tried),
};
