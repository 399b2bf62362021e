import { type Allocations, allocationsFor, EMPTY_TABLE, type RoutingTable } from '@weir/model';

/**
 * What Services have, by the last whole table that is known and by what was written of a newer one when its leader ended. A listener
 * without its Service says nothing: what that was granted, and by whom it is counted, is not known.
 */
export function allocationsFrom(whole: RoutingTable | undefined, remains: RoutingTable | undefined): Allocations {
  const before = allocationsFor(whole ?? EMPTY_TABLE);
  if (remains === undefined) return before;
  const since = allocationsFor(remains);
  const older = [...before.listeners].filter(([, { service }]) => !since.services.has(service));
  const newer = [...since.listeners].filter(([, { service }]) => since.services.has(service));
  return {
    listeners: new Map([...older, ...newer]),
    services: new Map([...before.services, ...since.services]),
  };
}
