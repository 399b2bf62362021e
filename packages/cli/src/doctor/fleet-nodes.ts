import type { NodeFact } from './facts.ts';

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** Those that are to carry proxies, whether or not they can. */
export function labelledNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return nodes.filter((node) => node.labels.role === 'loadbalancer');
}

/** Those of them on which Services are placed. */
export function usableNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return labelledNodes(nodes).filter((node) => whyLeftOut(node) === undefined && node.internalIPs.length > 0);
}

/** Why no Service is placed on a labelled node, and what to do; undefined: they are. */
export function whyLeftOut({ name, labels, isCordoned, isDeleting }: NodeFact): string | undefined {
  if (isDeleting) return `${name} is being deleted`;
  if (Object.hasOwn(labels, EXCLUDED)) {
    return `${name} has the label ${EXCLUDED} (to take it back: kubectl label node ${name} ${EXCLUDED}-)`;
  }
  if (isCordoned) return `${name} is cordoned (to take it back: kubectl uncordon ${name})`;
  return undefined;
}
