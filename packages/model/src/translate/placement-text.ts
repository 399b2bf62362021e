// Why the ports of a Service are not to be had, in the words of who wants them.
import type { ServicePort } from '../snapshot.ts';
import { counted, listed, portsText, portText } from './text.ts';

export interface TakenPort {
  readonly port: ServicePort;
  /** On how many of them. */
  readonly nodes: number;
  /** As far as this tenant may know them. */
  readonly holders: readonly string[];
}

/** Why none of `nodes` nodes has all the ports free. */
export function conflictMessage(taken: readonly TakenPort[], nodes: number, where: string): string {
  const everywhere = taken.filter((port) => port.nodes === nodes);
  if (everywhere.length > 0) {
    const ports = everywhere.map(({ port }) => port);
    const holders = [...new Set(everywhere.flatMap((port) => port.holders))].sort();
    const are = ports.length === 1 ? 'is' : 'are';
    return `${portsText(ports)} ${are} taken by ${listed(holders)} on ${nodesText(nodes)} of ${where}, and a port of a node has one owner; use another port, or ask the operator for more nodes`;
  }
  const each = taken.map(({ port, nodes: on, holders }) => `${portText(port)} by ${listed(holders)} on ${on}`);
  return `none of the ${counted(nodes, 'node')} of ${where} has all ports of the Service free (taken: ${listed(each)}); use other ports, make a Service of each port, or ask the operator for more nodes`;
}

function nodesText(nodes: number): string {
  return nodes === 1 ? 'the only node' : `the ${nodes} nodes`;
}
