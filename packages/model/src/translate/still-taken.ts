// Whether a Service that found its ports taken would find the same now, without deciding it again: for one port thousands may wait.
import type { RefusalReason } from '../reason.ts';
import type { StatusReason } from '../table/entry.ts';
import { type NodeRequirements, type PoolPlacementRequest, placeInPool } from './pool.ts';

/** How a message calls the holder of a port; only what the tenant who asks may know. */
export type OwnerText = (uid: string) => string;

/** Whether it would be told the same, in the world as it is. */
export type RefusalCheck = (holderText: OwnerText) => boolean;

/**
 * Of a Service that is refused whole because of `refusal`, as its placement said; undefined: it may find it otherwise only because it is
 * asked again. Only placement is looked at: all else that it depends on is of itself, its tenant or the nodes, and says so when it changes.
 */
export function refusalCheckFor(
  wish: NodeRequirements,
  request: PoolPlacementRequest,
  refusal: StatusReason<RefusalReason>,
): RefusalCheck | undefined {
  const { service, ports, modes, hosts, tenant, fleet, nodes, portAllocations, allocation } = request;
  // Who loses what it had is asked otherwise the next time: as one that is new.
  if (allocation !== undefined || portAllocations.listenersOf(service.uid).length > 0) return undefined;
  // One by one: what else came with the request, its `holderText` above all, would keep all tenants of that time for each who waits.
  const question = {
    service,
    ports,
    modes,
    hosts,
    tenant,
    fleet,
    nodes,
    portAllocations: portAllocations,
    allocation: allocation,
  };
  return (ownerText) => {
    const result = placeInPool(wish, { ...question, ownerText });
    if (result.kind === 'placed') portAllocations.allocate(service.uid, [], []);
    return (
      result.kind === 'conflict' &&
      result.refusal.reason === refusal.reason &&
      result.refusal.message === refusal.message
    );
  };
}
