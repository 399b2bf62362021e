import { EXCLUDE_NODE_LABEL, isExcludedNode, isLoadBalancerNode, nodeAddressesOf } from '@weir/model';
import type { NodeFact } from './facts.ts';

/** Those that are to carry proxies, whether or not they can. */
export function labelledNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return nodes.filter(isLoadBalancerNode);
}

/** Those of them on which Services are placed. */
export function usableNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return labelledNodes(nodes).filter(
    (node) => exclusionReason(node) === undefined && nodeAddressesOf(node).bind.length > 0,
  );
}

/** Why no Service is placed on a labelled node, and what to do; undefined: they are. */
export function exclusionReason(node: NodeFact): string | undefined {
  const { name, isCordoned, isDeleting } = node;
  if (isDeleting) return `${name} is being deleted`;
  if (isExcludedNode(node)) {
    return `${name} has the label ${EXCLUDE_NODE_LABEL} (to take it back: kubectl label node ${name} ${EXCLUDE_NODE_LABEL}-)`;
  }
  if (isCordoned) return `${name} is cordoned (to take it back: kubectl uncordon ${name})`;
  return undefined;
}
