import { endpointKey } from '../match/endpoint-key.ts';
import type { Endpoint } from '../table/entry.ts';
import { createLoad, type EndpointLoad } from './endpoint-load.ts';

/**
 * The loads of `endpoints` after `before`: those that stay keep their counts and health. One that appears beside others
 * that stay begins to ramp up at `now` (ms of the balancers' clock); a first table, or one in which all are new, has nobody
 * else to serve meanwhile. `departed` gives back the load of one that had left with connections open.
 */
export function renewLoads(
  endpoints: readonly Endpoint[],
  before: readonly EndpointLoad[],
  { now, departed }: { readonly now: number; readonly departed: (key: string) => EndpointLoad | undefined },
): readonly EndpointLoad[] {
  const known = new Map(before.map((load) => [endpointKey(load.endpoint), load]));
  const keys = endpoints.map(endpointKey);
  const othersServe = keys.some((key) => known.has(key));
  return endpoints.map((endpoint, index) => {
    const key = keys[index] as string;
    const stays = known.get(key);
    const load = stays ?? departed(key) ?? createLoad(endpoint);
    load.endpoint = endpoint;
    if (stays === undefined) load.warmSince = othersServe ? now : Number.NEGATIVE_INFINITY;
    return load;
  });
}
