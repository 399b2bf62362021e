import { endpointKey } from '../match/endpoint-key.ts';
import type { Endpoint } from '../table/entry.ts';
import { createEndpointStats, type EndpointStats } from './endpoint-load.ts';

/**
 * The loads of `endpoints` after `before`: those that stay keep their counts and health. One that appears beside others
 * that stay begins to ramp up at `now` (ms of the balancers' clock); a first table, or one in which all are new, has nobody
 * else to serve meanwhile. `departed` gives back the load of one that had left with connections open.
 */
export function updateEndpointStats(
  endpoints: readonly Endpoint[],
  before: readonly EndpointStats[],
  { now, departed }: { readonly now: number; readonly departed: (key: string) => EndpointStats | undefined },
): readonly EndpointStats[] {
  const known = new Map(before.map((load) => [endpointKey(load.endpoint), load]));
  const keys = endpoints.map(endpointKey);
  const othersServe = keys.some((key) => known.has(key));
  return endpoints.map((endpoint, index) => {
    const key = keys[index] as string;
    const stays = known.get(key);
    const load = stays ?? departed(key) ?? createEndpointStats(endpoint);
    load.endpoint = endpoint;
    if (stays === undefined) load.slowStartAt = othersServe ? now : Number.NEGATIVE_INFINITY;
    return load;
  });
}
