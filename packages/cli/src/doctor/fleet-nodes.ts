import { EXCLUDED_LABEL, isExcludedNode, isLabelledNode, nodeAddressesOf } from '@weir/model';
import type { NodeFact } from './facts.ts';

/** Those that are to carry proxies, whether or not they can. */
export function labelledNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return nodes.filter(isLabelledNode);
}

/** Those of them on which Services are placed. */
export function usableNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return labelledNodes(nodes).filter((node) => whyLeftOut(node) === undefined && nodeAddressesOf(node).bind.length > 0);
}

/** Why no Service is placed on a labelled node, and what to do; undefined: they are. */
export function whyLeftOut(node: NodeFact): string | undefined {
  const { name, isCordoned, isDeleting } = node;
  if (isDeleting) return `${name} is being deleted`;
  if (isExcludedNode(node)) {
    return `${name} has the label ${EXCLUDED_LABEL} (to take it back: kubectl label node ${name} ${EXCLUDED_LABEL}-)`;
  }
  if (isCordoned) return `${name} is cordoned (to take it back: kubectl uncordon ${name})`;
  return undefined;
}
