import { hashPair, hashText } from '../../balance/hash.ts';
import type { FleetSettings } from '../../fleet-settings.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { RefusalReason } from '../../reason.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import type { NodeEntry, StatusReason } from '../../table/entry.ts';
import type { Nodes } from '../nodes.ts';
import type { Tenant } from '../tenancy.ts';
import { nodesWithPorts, type PlacementRequest, type PlacementResult, placeService } from './placement.ts';

/**
 * The pool and the number of nodes for a Service, from its settings, or else from the defaults of its tenant's policy or of the fleet.
 */
export interface NodeRequirements {
  readonly pool: string;
  /** How many nodes the Service gets if so many are free: the requested number, bounded by the tenant's policy. */
  readonly nodeCount: number;
  readonly requestedNodes: number;
  /** Text that names the nodes of the pool in messages. */
  readonly nodesText: string;
}

export function nodeRequirementsFor(
  settings: ServiceSettings,
  { grants }: Tenant,
  fleet: FleetSettings,
): NodeRequirements {
  const pool = settings.pool ?? grants.pools[0] ?? DEFAULT_POOL;
  const standard = grants.nodesPerService ?? fleet.nodesPerService;
  const max = grants.maxNodesPerService ?? standard;
  const requestedNodes = settings.nodes ?? Math.min(standard, max);
  return {
    pool,
    nodeCount: Math.min(requestedNodes, max),
    requestedNodes,
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
      /** Why the Service stays on its nodes outside of the requested pool; undefined if the Service is in the requested pool. */
      readonly stayReason: StatusReason<RefusalReason> | undefined;
    });

/** Places a Service in the requested pool. A Service that gets no nodes there stays on the nodes that it already has. */
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
      : {
          reason: 'PortConflict',
          message: `no node of ${requirements.nodesText} is schedulable and has an address of the Service's IP families`,
        };
  const message = `${refusal.message}; the Service stays on ${onCurrentNodes.placement.nodes.join(', ')}`;
  return { ...onCurrentNodes, stayReason: { ...refusal, message } };
}

const TENANT_SEED = 0x7e17;
const NODE_SEED = 0x4e0d;

/**
 * Orders nodes by a hash of tenant and node, highest first (rendezvous hashing: D. Thaler, C. Ravishankar, IEEE/ACM ToN 6(1), 1998). All
 * Services of a tenant prefer the same nodes, and two tenants rarely share all of their nodes. Adding or removing a node does not change
 * the order of the other nodes.
 */
export function orderNodesFor(tenant: string, nodes: readonly NodeEntry[]): readonly NodeEntry[] {
  const hash = hashText(tenant, TENANT_SEED);
  const ranked = nodes.map((node) => ({ node, score: hashPair(hash, hashText(node.name, NODE_SEED)) }));
  ranked.sort((a, b) => b.score - a.score || (a.node.name < b.node.name ? -1 : 1));
  return ranked.map(({ node }) => node);
}

/**
 * A Service without an allocation that placement refused as a whole. After a change of ports or hosts, only the placement must be
 * repeated, because changes of all other inputs of the decision are noticed separately.
 */
export interface RefusedPlacement {
  readonly requirements: NodeRequirements;
  readonly request: Pick<PoolPlacementRequest, 'service' | 'ports' | 'modes' | 'settings' | 'tenant' | 'allocation'>;
  readonly refusal: StatusReason<RefusalReason>;
}

/** Reports whether placement would still refuse the Service with the same message. This check is cheaper than a decision. */
export function isRefusedAlike(
  { requirements, request, refusal }: RefusedPlacement,
  context: Pick<PoolPlacementRequest, 'fleet' | 'nodes' | 'portAllocations' | 'ownerText'>,
): boolean {
  const result = placeInPool(requirements, { ...request, ...context, mayAddNodes: false, affordableNodes: () => 1 });
  return (
    result.kind === 'conflict' && result.refusal.reason === refusal.reason && result.refusal.message === refusal.message
  );
}
