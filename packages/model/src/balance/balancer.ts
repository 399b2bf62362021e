import type { Endpoint } from '../table/entry.ts';

/**
 * Chooses among the endpoints of a listener. One per listener and worker, because some remember where they were.
 *
 *     const balancer = createBalancer(route.settings, random);
 *     const load = balancer.choose(loads, clientAddress);
 *     load.active += 1;
 */
export interface Balancer {
  /** Undefined only for an empty list. To try again elsewhere, leave out what was tried. */
  choose(loads: readonly EndpointLoad[], source: string): EndpointLoad | undefined;
}

/** An endpoint and its open connections, counted by the caller. */
export interface EndpointLoad {
  readonly endpoint: Endpoint;
  active: number;
}
