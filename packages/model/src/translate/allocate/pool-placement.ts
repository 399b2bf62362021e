import { hashPair, hashText } from '../../balance/hash.ts';
import type { FleetSettings } from '../../fleet-settings.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { RefusalReason } from '../../reason.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import type { NodeEntry, StatusReason } from '../../table/entry.ts';
import type { Nodes } from '../nodes.ts';
import type { Tenant } from '../tenancy.ts';
import { nodesWithPorts, type PlacementRequest, type PlacementResult, placeService } from './placement.ts';

// The nodes that a Service may be put on: those of its pool, and while these have no room for it, those that it has.

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

const TENANT_SEED = 0x7e17;
const NODE_SEED = 0x4e0d;

/**
 * The nodes in the order in which a tenant gets them: by the hash of (tenant, node), highest first (rendezvous hashing:
 * D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998). So the Services of one tenant stand together, two tenants rarely have
 * all their nodes in common, and a node that comes or goes moves nobody else.
 */
export function orderNodesFor(tenant: string, nodes: readonly NodeEntry[]): readonly NodeEntry[] {
  const hash = hashText(tenant, TENANT_SEED);
  const ranked = nodes.map((node) => ({ node, score: hashPair(hash, hashText(node.name, NODE_SEED)) }));
  ranked.sort((a, b) => b.score - a.score || (a.node.name < b.node.name ? -1 : 1));
  return ranked.map(({ node }) => node);
}

// Whether a Service that found its ports taken would find the same now, without deciding it again: for one port thousands may wait.

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
