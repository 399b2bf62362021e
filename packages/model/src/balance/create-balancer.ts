import type { ServiceSettings } from '../table/entry.ts';
import type { Balancer } from './balancer.ts';
import { leastConnections } from './least-connections.ts';
import { rendezvous } from './rendezvous.ts';
import { createRoundRobin } from './round-robin.ts';

/** The balancer that a Service's settings ask for. `random` gives numbers in [0, 1). */
export function createBalancer(settings: ServiceSettings, random: () => number): Balancer {
  if (settings.affinity.kind === 'client-ip') return { choose: rendezvous };
  switch (settings.algorithm) {
    case 'least-connections':
      return { choose: (loads) => leastConnections(loads, random) };
    case 'round-robin':
      return createRoundRobin();
  }
}
