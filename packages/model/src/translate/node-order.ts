import { hashPair, hashText } from '../balance/hash.ts';
import type { NodeEntry } from '../table/entry.ts';

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
