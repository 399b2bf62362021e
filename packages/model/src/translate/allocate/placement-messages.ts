import { countOf, joinItems, portsText, portText } from '../../message-text.ts';
import { DEFAULT_POOL } from '../../policy.ts';
import type { ServicePort } from '../../snapshot.ts';

// Why the ports of a Service are not to be had, in the words of who wants them.
export interface PortConflict {
  readonly port: ServicePort;
  /** On how many of them. */
  readonly nodeCount: number;
  /** As far as this tenant may know them. */
  readonly owners: readonly string[];
}

/** Why none of `nodes` nodes has all the ports free. */
export function conflictMessage(taken: readonly PortConflict[], nodes: number, where: string): string {
  const everywhere = taken.filter((port) => port.nodeCount === nodes);
  if (everywhere.length > 0) {
    const ports = everywhere.map(({ port }) => port);
    const holders = [...new Set(everywhere.flatMap((port) => port.owners))].sort();
    const are = ports.length === 1 ? 'is' : 'are';
    return `${portsText(ports)} ${are} taken by ${joinItems(holders)} on ${nodesText(nodes)} of ${where}, and a port of a node has one owner; use another port, or ask the operator for more nodes`;
  }
  const each = taken.map(({ port, nodeCount: on, owners }) => `${portText(port)} by ${joinItems(owners)} on ${on}`);
  return `none of the ${countOf(nodes, 'node')} of ${where} has all ports of the Service free (taken: ${joinItems(each)}); use other ports, make a Service of each port, or ask the operator for more nodes`;
}

function nodesText(nodes: number): string {
  return nodes === 1 ? 'the only node' : `the ${nodes} nodes`;
}

// How messages speak of the nodes of a pool.

/** Why a Service is on no node of a pool, and what to do. */
export function noNodesMessage(pool: string | null): string {
  const isDefault = pool === null || pool === DEFAULT_POOL;
  const nodes = isDefault
    ? 'node with the label role=loadbalancer'
    : `node of pool "${pool}" (labels role=loadbalancer and weir.dev/pool=${pool})`;
  const command = `kubectl label node NAME role=loadbalancer${isDefault ? '' : ` weir.dev/pool=${pool}`}`;
  return `no ${nodes} takes this Service: there is none, or each is cordoned, without an address of its IP families or without a proxy that answers; ask the operator for one (${command})`;
}
