import type { Route } from '../match/route.ts';
import type { Affinity } from '../settings/service-settings.ts';
import type { Balancer, BalancerTools } from './balancer.ts';
import { createClientAffinity } from './client-affinity.ts';
import { hashAddress, hashFlow } from './client-hash.ts';
import { FIRST_WORKING } from './first.ts';
import { createLeastConnections } from './least-connections.ts';
import { createMaglev } from './maglev.ts';
import { createRandom } from './random.ts';
import { createRendezvous } from './rendezvous.ts';
import { createRoundRobin } from './round-robin.ts';

/** What of a route a balancer is made for. */
export type Balanced = Pick<Route, 'service' | 'listener' | 'settings'>;

/**
 * The balancer that a Service asks for. A UDP flow is always placed by its hash, whatever the algorithm says, because the
 * kernel may give its next datagram to another worker, which has to send it to the same endpoint.
 */
export function createBalancer(route: Balanced, tools: BalancerTools): Balancer {
  const { settings, listener } = route;
  if (settings.affinity.kind === 'client-ip') return createClientAffinity(route, settings.affinity.timeoutMs, tools);
  const isUdp = listener.protocol === 'UDP';
  if (usesMaglev(route)) return createMaglev(isUdp ? hashFlow : hashAddress);
  if (settings.algorithm === 'first') return FIRST_WORKING;
  if (isUdp) return createRendezvous(hashFlow);
  switch (settings.algorithm) {
    case 'round-robin':
      return createRoundRobin(tools);
    case 'random':
      return createRandom(tools);
    default:
      return createLeastConnections(tools);
  }
}

/** Whether the main thread is to compute a table for its listener. */
export function usesMaglev({ settings }: Pick<Route, 'settings'>): boolean {
  return settings.algorithm === 'maglev' && settings.affinity.kind === 'none';
}

/** Whether a balancer made for the one serves the other of its listener: what it remembers is kept as long as possible. */
export function isBalancedAlike({ settings: a }: Balanced, { settings: b }: Balanced): boolean {
  if (a.affinity.kind === 'none' && b.affinity.kind === 'none') return a.algorithm === b.algorithm;
  return timeoutOf(a.affinity) === timeoutOf(b.affinity);
}

function timeoutOf(affinity: Affinity): number | undefined {
  return affinity.kind === 'client-ip' ? affinity.timeoutMs : undefined;
}
