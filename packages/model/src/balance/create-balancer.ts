import type { Route } from '../match/route.ts';
import type { Affinity } from '../settings/service-settings.ts';
import type { Balancer, BalancerOptions } from './balancer.ts';
import { createClientAffinityBalancer } from './client-affinity.ts';
import { hashClientAddress, hashClientFlow } from './client-hash.ts';
import { FIRST_AVAILABLE_BALANCER } from './first.ts';
import { createLeastConnectionsBalancer } from './least-connections.ts';
import { createMaglevBalancer } from './maglev.ts';
import { createRandomBalancer } from './random.ts';
import { createRendezvousBalancer } from './rendezvous.ts';
import { createRoundRobinBalancer } from './round-robin.ts';

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
