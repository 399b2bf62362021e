// The nodes that a Service may be put on: those of its pool, and while these have no room for it, those that it has.
import { DEFAULT_POOL } from '../policy.ts';
import type { RefusalReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { FleetSettings } from '../snapshot.ts';
import type { NodeEntry, StatusReason } from '../table/entry.ts';
import { orderNodesFor } from './node-order.ts';
import type { Nodes } from './nodes.ts';
import { nodesWithPorts, type PlacementRequest, type PlacementResult, placeService } from './placement.ts';
import type { Tenant } from './tenancy.ts';

/** What a Service wants, by itself or because its tenant's policy says so. */
export interface NodeRequirements {
  readonly pool: string;
  readonly nodeCount: number;
  /** How a message calls the nodes of the pool together. */
  readonly nodesText: string;
}

export function nodeRequirementsFor(
  settings: ServiceSettings,
  { grants }: Tenant,
  fleet: FleetSettings,
): NodeRequirements {
  const pool = settings.pool ?? grants.pools[0] ?? DEFAULT_POOL;
  return {
    pool,
    nodeCount: settings.nodes ?? grants.nodesPerService ?? fleet.nodesPerService,
    nodesText: pool === DEFAULT_POOL ? 'the fleet' : `pool "${pool}"`,
  };
}

export type PoolPlacementRequest = Omit<
  PlacementRequest,
  'nodes' | 'unschedulableNodes' | 'lostNodes' | 'nodeCount' | 'nodesText' | 'poolOf'
> & {
  readonly nodes: Nodes;
  readonly tenant: string;
};

export type PoolPlacementResult =
  | Exclude<PlacementResult, { readonly kind: 'placed' }>
  | (Extract<PlacementResult, { readonly kind: 'placed' }> & {
      /** Why it is not where it asks to be. */
      readonly stays: StatusReason<RefusalReason> | undefined;
    });

/** Places a Service in its pool. One that has nodes of another and gets none in this one stays where it is. */
export function placeInPool(wish: NodeRequirements, request: PoolPlacementRequest): PoolPlacementResult {
  const { nodes, tenant, service, ports, portAllocations } = request;
  const { unschedulable: cordoned, lost: lostNodes } = nodes;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const placeOn = (some: readonly NodeEntry[]): PlacementResult =>
    placeService({
      ...request,
      nodes: some,
      unschedulableNodes: cordoned,
      lostNodes,
      poolOf,
      nodeCount: wish.nodeCount,
      nodesText: wish.nodesText,
    });
  const inPool = nodes.entries.filter(({ pool }) => pool === wish.pool);
  const result = placeOn(orderNodesFor(tenant, inPool));
  if (result.kind === 'placed') return { ...result, stays: undefined };
  const holding = nodesWithPorts(ports, portAllocations.listenersOf(service.uid));
  const present = nodes.entries.filter(({ name }) => holding.has(name));
  const before = present.length > 0 ? placeOn(present) : undefined;
  if (before?.kind !== 'placed') return result;
  const why: StatusReason<RefusalReason> =
    result.kind === 'conflict'
      ? result.refusal
      : { reason: 'PortConflict', message: `${wish.nodesText} has no node with an address of its IP families` };
  return { ...before, stays: { ...why, message: `${why.message}; it stays on ${before.placement.nodes.join(', ')}` } };
}
