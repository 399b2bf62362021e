import { countOf, joinItems, portsText, portText } from '../../message-text.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { ServicePort } from '../../snapshot.ts';

/** A port that other Services own on some nodes. */
export interface PortConflict {
  readonly port: ServicePort;
  /** On how many nodes the port is taken. */
  readonly nodeCount: number;
  /** The owners as messages name them to this tenant. */
  readonly owners: readonly string[];
}

/** The message of a Service for which none of `nodeCount` nodes has all ports free. `nodesText`: `the fleet`, `pool "edge"`. */
export function conflictMessage(conflicts: readonly PortConflict[], nodeCount: number, nodesText: string): string {
  const everywhere = conflicts.filter((conflict) => conflict.nodeCount === nodeCount);
  if (everywhere.length > 0) {
    const ports = everywhere.map(({ port }) => port);
    const owners = [...new Set(everywhere.flatMap((conflict) => conflict.owners))].sort();
    const are = ports.length === 1 ? 'is' : 'are';
    return `${portsText(ports)} ${are} taken by ${joinItems(owners)} on ${allNodesText(nodeCount)} of ${nodesText}, and a port of a node has one owner; use another port, or ask the operator for more nodes`;
  }
  const taken = conflicts.map(
    ({ port, nodeCount: on, owners }) => `${portText(port)} by ${joinItems(owners)} on ${on}`,
  );
  return `none of the ${countOf(nodeCount, 'node')} of ${nodesText} has all ports of the Service free (taken: ${joinItems(taken)}); use other ports, make a Service of each port, or ask the operator for more nodes`;
}

function allNodesText(nodeCount: number): string {
  return nodeCount === 1 ? 'the only node' : `the ${nodeCount} nodes`;
}

/** Why a Service has no node, and what to do. */
export function noNodesMessage(pool: string | null): string {
  const isDefault = pool === null || pool === DEFAULT_POOL;
  const node = isDefault
    ? 'node with the label role=loadbalancer'
    : `node of pool "${pool}" (labels role=loadbalancer and weir.dev/pool=${pool})`;
  const command = `kubectl label node NAME role=loadbalancer${isDefault ? '' : ` weir.dev/pool=${pool}`}`;
  return `no ${node} can serve this Service: there is no such node, or each such node is cordoned, has no address of the Service's IP families, or has no running proxy; ask the operator for a node (${command})`;
}
