import type { ServiceSettings } from '../settings/service-settings.ts';
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
    case 'random':
      return { choose: (loads) => loads[Math.floor(random() * loads.length)] };
    case 'first':
      return { choose: (loads) => loads[0] };
    case 'maglev':
      return { choose: rendezvous };
  }
}
