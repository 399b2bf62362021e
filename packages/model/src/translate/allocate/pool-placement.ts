import { hashPair, hashText } from '../../balance/hash.ts';
import type { FleetSettings } from '../../fleet-settings.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { RefusalReason } from '../../reason.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import type { NodeEntry, StatusReason } from '../../table/entry.ts';
import type { Nodes } from '../nodes.ts';
import type { Tenant } from '../tenancy.ts';
import { nodesWithPorts, type PlacementRequest, type PlacementResult, placeService } from './placement.ts';

/** The nodes that a Service requests, with the defaults of its tenant's policy and of the fleet. */
export interface NodeRequirements {
  readonly pool: string;
  readonly nodeCount: number;
  /** Names the nodes of the pool in messages. */
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
      /** Why the Service stays on its nodes outside of the requested pool; undefined if it is in the pool. */
      readonly stayReason: StatusReason<RefusalReason> | undefined;
    });

/** Places a Service in the requested pool. A Service that has nodes and gets none in the pool stays on its nodes. */
export function placeInPool(requirements: NodeRequirements, request: PoolPlacementRequest): PoolPlacementResult {
  const { nodes, tenant, service, ports, portAllocations } = request;
  const poolOf = (node: string): string | undefined => nodes.byName.get(node)?.pool;
  const placeOn = (candidates: readonly NodeEntry[]): PlacementResult =>
    placeService({
      ...request,
      nodes: candidates,
      unschedulableNodes: nodes.unschedulable,
      lostNodes: nodes.lost,
      poolOf,
      nodeCount: requirements.nodeCount,
      nodesText: requirements.nodesText,
    });
  const inPool = nodes.entries.filter(({ pool }) => pool === requirements.pool);
  const result = placeOn(orderNodesFor(tenant, inPool));
  if (result.kind === 'placed') return { ...result, stayReason: undefined };
  const nodesInUse = nodesWithPorts(ports, portAllocations.listenersOf(service.uid));
  const currentNodes = nodes.entries.filter(({ name }) => nodesInUse.has(name));
  const onCurrentNodes = currentNodes.length > 0 ? placeOn(currentNodes) : undefined;
  if (onCurrentNodes?.kind !== 'placed') return result;
  const refusal: StatusReason<RefusalReason> =
    result.kind === 'conflict'
      ? result.refusal
      : { reason: 'PortConflict', message: `${requirements.nodesText} has no node with an address of its IP families` };
  const message = `${refusal.message}; the Service stays on ${onCurrentNodes.placement.nodes.join(', ')}`;
  return { ...onCurrentNodes, stayReason: { ...refusal, message } };
}

const TENANT_SEED = 0x7e17;
const NODE_SEED = 0x4e0d;

/**
 * Orders nodes by the hash of (tenant, node), highest first (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998).
 * The Services of one tenant are on the same nodes, two tenants rarely share all of their nodes, and a node that comes or goes changes
 * the order of no other nodes.
 */
export function orderNodesFor(tenant: string, nodes: readonly NodeEntry[]): readonly NodeEntry[] {
  const hash = hashText(tenant, TENANT_SEED);
  const ranked = nodes.map((node) => ({ node, score: hashPair(hash, hashText(node.name, NODE_SEED)) }));
  ranked.sort((a, b) => b.score - a.score || (a.node.name < b.node.name ? -1 : 1));
  return ranked.map(({ node }) => node);
}

/**
 * A Service that placement refused in whole, without an allocation: only placement can change its result, because everything else that
 * its decision depends on makes the Service dirty.
 */
export interface RefusedPlacement {
  readonly requirements: NodeRequirements;
  readonly request: Pick<PoolPlacementRequest, 'service' | 'ports' | 'modes' | 'hosts' | 'tenant' | 'allocation'>;
  readonly refusal: StatusReason<RefusalReason>;
}

/** Whether placement would refuse the Service with the same message now. This is cheaper than a decision. */
export function isRefusedAlike(
  { requirements, request, refusal }: RefusedPlacement,
  context: Pick<PoolPlacementRequest, 'fleet' | 'nodes' | 'portAllocations' | 'ownerText'>,
): boolean {
  const result = placeInPool(requirements, { ...request, ...context });
  return (
    result.kind === 'conflict' && result.refusal.reason === refusal.reason && result.refusal.message === refusal.message
  );
}
