import { countOf, joinItems, portsText, portText } from '../../message-text.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { ServicePort } from '../../snapshot.ts';

/** A port that a Service cannot get on some nodes. */
export interface PortConflict {
  readonly port: ServicePort;
  /** The number of nodes on which the port is taken. */
  readonly nodeCount: number;
  /** The texts that name the owners of the port in the message. */
  readonly owners: readonly string[];
}

/**
 * Returns the message for a Service that cannot be placed, because on none of the `nodeCount` nodes all ports of the Service are free.
 * `nodesText` names the nodes, such as `the fleet` or `pool "edge"`.
 */
export function conflictMessage(conflicts: readonly PortConflict[], nodeCount: number, nodesText: string): string {
  const everywhere = conflicts.filter((conflict) => conflict.nodeCount === nodeCount);
  if (everywhere.length > 0) {
    const ports = everywhere.map(({ port }) => port);
    const owners = [...new Set(everywhere.flatMap((conflict) => conflict.owners))].sort();
    const are = ports.length === 1 ? 'is' : 'are';
    return `${portsText(ports)} ${are} taken by ${joinItems(owners)} on ${allNodesText(nodeCount)} of ${nodesText} (a port of a node can have only one owner); use another port, or ask the operator for more nodes`;
  }
  const taken = conflicts.map(
    ({ port, nodeCount: on, owners }) => `${portText(port)} by ${joinItems(owners)} on ${countOf(on, 'node')}`,
  );
  return `none of the ${countOf(nodeCount, 'node')} of ${nodesText} has all ports of the Service free (taken: ${joinItems(taken)}); use other ports, create a separate Service for each port, or ask the operator for more nodes`;
}

function allNodesText(nodeCount: number): string {
  return nodeCount === 1 ? 'the only node' : `the ${nodeCount} nodes`;
}

/** Returns the message for a Service that has no node: the possible causes, and what the tenant can do. */
export function noNodesMessage(pool: string | null): string {
  const isDefault = pool === null || pool === DEFAULT_POOL;
  const node = isDefault
    ? 'node with the label role=loadbalancer'
    : `node of pool "${pool}" (labels role=loadbalancer and weir.dev/pool=${pool})`;
  const command = `kubectl label node NAME role=loadbalancer${isDefault ? '' : ` weir.dev/pool=${pool}`}`;
  return `no ${node} can serve this Service: there is no such node, or each such node is cordoned, has no address of the Service's IP families, or has no running proxy; ask the operator for a node (${command})`;
}
