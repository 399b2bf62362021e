import { canonicalAddress } from '../match/cidr.ts';
import { DEFAULT_POOL } from '../policy.ts';
import { type Problem, subjectFor } from '../problem.ts';
import type { NodeObject, NodeUnreachability, ServiceObject, Snapshot } from '../snapshot.ts';
import { type NodeEntry, nodeId } from '../table/entry.ts';

const ZONE_LABEL = 'topology.kubernetes.io/zone';

export interface Nodes {
  /** Sorted by name. */
  readonly entries: readonly NodeEntry[];
  readonly byName: ReadonlyMap<string, NodeEntry>;
  /** Names of those on whom nothing new is put: they are cordoned, or their proxy is silent. */
  readonly unschedulable: ReadonlySet<string>;
  /** Names of those whose place others take: their proxy has been silent for long. */
  readonly lost: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

/** The nodes that carry proxies: labelled `role=loadbalancer`, not excluded, with an address to bind. */
export function nodesFor(snapshot: Snapshot): Nodes {
  const problems: Problem[] = [];
  const carrying = snapshot.nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node));
  const entries = carrying
    .map((node) => nodeEntryFor(node, problems))
    .filter((node) => node.bindAddresses.length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const absent = unreachableNodesOf(entries, snapshot.unreachableNodes);
  const unschedulable = carrying.filter((node) => node.unschedulable).map(({ name }) => name);
  const lost = [...absent].filter(([, absence]) => absence === 'lost').map(([name]) => name);
  return {
    entries,
    byName: new Map(entries.map((node) => [node.name, node])),
    unschedulable: new Set([...unschedulable, ...absent.keys()]),
    lost: new Set(lost),
    problems: [...problems, ...lost.map(lostProblem)],
  };
}

/** Where no proxy of a pool answers, nobody knows a better node: then none of them counts as absent. */
function unreachableNodesOf(
  entries: readonly NodeEntry[],
  absent: Snapshot['unreachableNodes'],
): ReadonlyMap<string, NodeUnreachability> {
  if (absent === undefined || absent.size === 0) return new Map();
  const pools = new Set(entries.filter(({ name }) => !absent.has(name)).map(({ pool }) => pool));
  return new Map(
    entries.flatMap(({ name, pool }) => {
      const absence = pools.has(pool) ? absent.get(name) : undefined;
      return absence === undefined ? [] : [[name, absence] as const];
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
      'no proxy of this node has been heard for minutes: its Services are served by other nodes where there is room; look at the proxy there, or take the label role=loadbalancer off the node',
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
      message: `annotation ${NODE_ADDRESSES_ANNOTATION}: "${text}" is not an IP address; the others of the node are used`,
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

/** Of each family those from outside, if any: a node may have one of IPv4 and be reached by IPv6 as it is. */
function publishedAddressesOf(bound: readonly string[], external: readonly string[]): readonly string[] {
  const isIPv6 = (address: string): boolean => address.includes(':');
  const ofFamily = (family: boolean): readonly string[] => {
    const outside = external.filter((address) => isIPv6(address) === family);
    return outside.length > 0 ? outside : bound.filter((address) => isIPv6(address) === family);
  };
  return [...ofFamily(false), ...ofFamily(true)].sort();
}

/** The addresses of a node that a Service binds: those of its IP families; a directory may leave the families out. */
export function bindAddressesFor(node: NodeEntry, service: ServiceObject): readonly string[] {
  if (service.ipFamilies.length === 0) return node.bindAddresses;
  return node.bindAddresses.filter((address) => service.ipFamilies.includes(address.includes(':') ? 'IPv6' : 'IPv4'));
}

// Which nodes carry proxies, and where: the same for translation and for whoever looks at a cluster from outside.
export const EXCLUDE_NODE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';
export const NODE_ADDRESSES_ANNOTATION = 'weir.dev/addresses';
const POOL_LABEL = 'weir.dev/pool';

/** Whether it is to carry a proxy. */
export function isLoadBalancerNode({ labels }: Pick<NodeObject, 'labels'>): boolean {
  return labels.role === 'loadbalancer';
}

/** Whether it is kept out all the same. */
export function isExcludedNode({ labels }: Pick<NodeObject, 'labels'>): boolean {
  return Object.hasOwn(labels, EXCLUDE_NODE_LABEL);
}

/** The pool of its label; without one, or with an empty one, the default pool. */
export function nodePoolOf({ labels }: Pick<NodeObject, 'labels'>): string {
  return (Object.hasOwn(labels, POOL_LABEL) && labels[POOL_LABEL]) || DEFAULT_POOL;
}

export interface NodeAddresses {
  /** In canonical text, each once, sorted. */
  readonly bind: readonly string[];
  /** Parts of the annotation that are no addresses. */
  readonly invalid: readonly string[];
}

/** What a proxy binds on a node: its InternalIPs and the addresses of its annotation. */
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

/** Those that are addresses, in canonical text, each once, sorted. */
export function canonicalAddresses(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.map(canonicalAddress).filter((address): address is string => address !== undefined))].sort();
}
