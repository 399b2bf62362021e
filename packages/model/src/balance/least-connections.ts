import type { EndpointLoad } from './balancer.ts';

/**
 * Of two different ones at random the one with fewer open connections ("power of two choices": M. Mitzenmacher, The
 * Power of Two Choices in Randomized Load Balancing, IEEE TPDS 12(10), 2001). Close to the true minimum, without a scan
 * and without every worker running to the same endpoint.
 */
export function leastConnections(loads: readonly EndpointLoad[], random: () => number): EndpointLoad | undefined {
  const count = loads.length;
  if (count < 2) return loads[0];
  const first = Math.floor(random() * count);
  const step = 1 + Math.floor(random() * (count - 1));
  const a = loads[first];
  const b = loads[(first + step) % count];
  if (a === undefined || b === undefined) return a ?? b;
  return b.active < a.active ? b : a;
}
