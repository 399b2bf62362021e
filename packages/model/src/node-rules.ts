// Which nodes carry proxies, and where: the same for translation and for whoever looks at a cluster from outside.
import { canonicalAddress } from './match/cidr.ts';
import { DEFAULT_POOL } from './policy.ts';
import type { NodeObject } from './snapshot.ts';

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
