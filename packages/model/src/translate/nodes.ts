import { canonicalAddress } from '../match/address.ts';
import { DEFAULT_POOL } from '../policy.ts';
import { type Problem, subjectFor } from '../problem.ts';
import type { NodeObject, NodeUnreachability, ServiceObject, Snapshot } from '../snapshot.ts';
import { type NodeEntry, nodeId } from '../table/entry.ts';

const ZONE_LABEL = 'topology.kubernetes.io/zone';

export interface Nodes {
  /** The nodes that run proxies, sorted by name. */
  readonly entries: readonly NodeEntry[];
  readonly byName: ReadonlyMap<string, NodeEntry>;
  /** Names of the nodes that get no new Services, because they are cordoned or their proxy sends no heartbeats. */
  readonly unschedulable: ReadonlySet<string>;
  /** Names of the nodes whose Services move to other nodes, because their proxy has sent no heartbeat for minutes. */
  readonly lost: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

/** Returns the nodes that run proxies: labelled `role=loadbalancer`, not excluded, with an address to bind. */
export function nodesFor(snapshot: Snapshot): Nodes {
  const problems: Problem[] = [];
  const candidates = snapshot.nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node));
  const entries = candidates
    .map((node) => nodeEntryFor(node, problems))
    .filter((node) => node.bindAddresses.length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const unreachable = unreachableNodesIn(entries, snapshot.unreachableNodes);
  const cordoned = candidates.filter((node) => node.unschedulable).map(({ name }) => name);
  const lost = [...unreachable].filter(([, state]) => state === 'lost').map(([name]) => name);
  return {
    entries,
    byName: new Map(entries.map((node) => [node.name, node])),
    unschedulable: new Set([...cordoned, ...unreachable.keys()]),
    lost: new Set(lost),
    problems: [...problems, ...lost.map(lostProblem)],
  };
}

/**
 * Returns the unreachable nodes. Leaves out pools in which all nodes are unreachable, because such a pool has no better node for its
 * Services.
 */
function unreachableNodesIn(
  entries: readonly NodeEntry[],
  reported: Snapshot['unreachableNodes'],
): ReadonlyMap<string, NodeUnreachability> {
  if (reported === undefined || reported.size === 0) return new Map();
  const reachablePools = new Set(entries.filter(({ name }) => !reported.has(name)).map(({ pool }) => pool));
  return new Map(
    entries.flatMap(({ name, pool }) => {
      const state = reachablePools.has(pool) ? reported.get(name) : undefined;
      return state === undefined ? [] : [[name, state] as const];
    }),
  );
}

function lostProblem(name: string): Problem {
  return {
    code: 'NoNodes',
    subject: subjectFor('Node', { name }),
    severity: 'warning',
    heals: true,
    message:
      'no proxy on this node has sent a heartbeat for minutes, so the Services of this node move to other nodes where their ports are free; check the proxy on the node, or remove the label role=loadbalancer from the node',
  };
}

function nodeEntryFor(node: NodeObject, problems: Problem[]): NodeEntry {
  const { bind: bindAddresses, invalid } = nodeAddressesOf(node);
  for (const text of invalid) {
    problems.push({
      code: 'InvalidAnnotation',
      subject: subjectFor('Node', node),
      severity: 'error',
      heals: false,
      message: `annotation ${NODE_ADDRESSES_ANNOTATION}: "${text}" is not an IP address; the other addresses of the node are used`,
    });
  }
  if (bindAddresses.length === 0) {
    problems.push({
      code: 'NoNodes',
      subject: subjectFor('Node', node),
      severity: 'warning',
      heals: true,
      message: 'the node has no InternalIP yet, so nothing can be bound there',
    });
  }
  const zone = Object.hasOwn(node.labels, ZONE_LABEL) ? (node.labels[ZONE_LABEL] ?? null) : null;
  const pool = nodePoolOf(node);
  const publishedAddresses = publishedAddressesOf(bindAddresses, canonicalAddresses(node.externalIPs));
  return { kind: 'node', id: nodeId(node.name), name: node.name, bindAddresses, publishedAddresses, zone, pool };
}

/**
 * Returns the addresses to publish for a node. For each IP family these are the external addresses of the node; without external
 * addresses, the bound addresses.
 */
function publishedAddressesOf(bound: readonly string[], external: readonly string[]): readonly string[] {
  const isIPv6 = (address: string): boolean => address.includes(':');
  const inFamily = (family: 'IPv4' | 'IPv6'): readonly string[] => {
    const isInFamily = (address: string): boolean => isIPv6(address) === (family === 'IPv6');
    const externalInFamily = external.filter(isInFamily);
    return externalInFamily.length > 0 ? externalInFamily : bound.filter(isInFamily);
  };
  return [...inFamily('IPv4'), ...inFamily('IPv6')].sort();
}

/**
 * Returns the addresses of a node in the IP families of the Service. Returns all addresses if the Service names no families, as in a
 * manifest file.
 */
export function bindAddressesFor(node: NodeEntry, service: ServiceObject): readonly string[] {
  if (service.ipFamilies.length === 0) return node.bindAddresses;
  return node.bindAddresses.filter((address) => service.ipFamilies.includes(address.includes(':') ? 'IPv6' : 'IPv4'));
}

export const EXCLUDE_NODE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';
export const NODE_ADDRESSES_ANNOTATION = 'weir.dev/addresses';
const POOL_LABEL = 'weir.dev/pool';

/** Reports whether the node has the label `role=loadbalancer`. */
export function isLoadBalancerNode({ labels }: Pick<NodeObject, 'labels'>): boolean {
  return labels.role === 'loadbalancer';
}

/** Reports whether a label excludes the node from external load balancers. */
export function isExcludedNode({ labels }: Pick<NodeObject, 'labels'>): boolean {
  return Object.hasOwn(labels, EXCLUDE_NODE_LABEL);
}

/** Returns the pool that the label `weir.dev/pool` names; the default pool if the label is missing or empty. */
export function nodePoolOf({ labels }: Pick<NodeObject, 'labels'>): string {
  return (Object.hasOwn(labels, POOL_LABEL) && labels[POOL_LABEL]) || DEFAULT_POOL;
}

export interface NodeAddresses {
  /** The addresses to bind, in canonical form, without duplicates, sorted. */
  readonly bind: readonly string[];
  /** Parts of the annotation weir.dev/addresses that are not IP addresses. */
  readonly invalid: readonly string[];
}

/** Returns the addresses that a proxy binds on a node: its InternalIPs, and the addresses of the annotation weir.dev/addresses. */
export function nodeAddressesOf({
  internalIPs,
  annotations,
}: Pick<NodeObject, 'internalIPs' | 'annotations'>): NodeAddresses {
  const text = Object.hasOwn(annotations, NODE_ADDRESSES_ANNOTATION)
    ? (annotations[NODE_ADDRESSES_ANNOTATION] ?? '')
    : '';
  const annotated = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const invalid = annotated.filter((part) => canonicalAddress(part) === undefined);
  return { bind: canonicalAddresses([...internalIPs, ...annotated]), invalid };
}

/** Returns the valid addresses in canonical form, without duplicates, sorted. */
export function canonicalAddresses(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.map(canonicalAddress).filter((address): address is string => address !== undefined))].sort();
}
