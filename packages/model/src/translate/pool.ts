// The nodes that a Service may be put on: those of its pool, and while these have no room for it, those that it has.
import { DEFAULT_POOL } from '../policy.ts';
import type { RefusalReason } from '../reason.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { FleetSettings } from '../snapshot.ts';
import type { NodeEntry, Verdict } from '../table/entry.ts';
import { nodeOrderFor } from './node-order.ts';
import type { Nodes } from './nodes.ts';
import { nodesHolding, type PlacementRequest, type PlacementResult, place } from './placement.ts';
import type { Tenant } from './tenancy.ts';

/** What a Service wants, by itself or because its tenant's policy says so. */
export interface NodeWish {
  readonly pool: string;
  readonly nodes: number;
  /** How a message calls the nodes of the pool together. */
  readonly where: string;
}

export function nodeWishFor(settings: ServiceSettings, { grants }: Tenant, fleet: FleetSettings): NodeWish {
  const pool = settings.pool ?? grants.pools[0] ?? DEFAULT_POOL;
  return {
    pool,
    nodes: settings.nodes ?? grants.nodesPerService ?? fleet.nodesPerService,
    where: pool === DEFAULT_POOL ? 'the fleet' : `pool "${pool}"`,
  };
}

export type PoolRequest = Omit<PlacementRequest, 'nodes' | 'cordoned' | 'lost' | 'wanted' | 'where' | 'poolOf'> & {
  readonly nodes: Nodes;
  readonly tenant: string;
};

export type PoolResult =
  | Exclude<PlacementResult, { readonly kind: 'placed' }>
  | (Extract<PlacementResult, { readonly kind: 'placed' }> & {
      /** Why it is not where it asks to be. */
      readonly stays: Verdict<RefusalReason> | undefined;
    });

/** Places a Service in its pool. One that has nodes of another and gets none in this one stays where it is. */
export function placeInPool(wish: NodeWish, request: PoolRequest): PoolResult {
  const { nodes, tenant, service, ports, taken } = request;
  const { cordoned, lost } = nodes;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const placeOn = (some: readonly NodeEntry[]): PlacementResult =>
    place({ ...request, nodes: some, cordoned, lost, poolOf, wanted: wish.nodes, where: wish.where });
  const inPool = nodes.entries.filter(({ pool }) => pool === wish.pool);
  const result = placeOn(nodeOrderFor(tenant, inPool));
  if (result.kind === 'placed') return { ...result, stays: undefined };
  const holding = nodesHolding(ports, taken.listenersOf(service.uid));
  const present = nodes.entries.filter(({ name }) => holding.has(name));
  const before = present.length > 0 ? placeOn(present) : undefined;
  if (before?.kind !== 'placed') return result;
  const why: Verdict<RefusalReason> =
    result.kind === 'conflict'
      ? result.refusal
      : { reason: 'PortConflict', message: `${wish.where} has no node with an address of its IP families` };
  return { ...before, stays: { ...why, message: `${why.message}; it stays on ${before.placement.nodes.join(', ')}` } };
}
