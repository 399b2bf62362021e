// Which nodes hold the ports of a Service. The unit that is owned is (node address, protocol, port): who has it keeps it.
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import { type ListenerEntry, listenerId, type NodeEntry, type Protocol } from '../table/entry.ts';
import { bindAddressesFor } from './nodes.ts';
import { counted, listed, portText } from './text.ts';

export interface Placement {
  readonly listeners: readonly ListenerEntry[];
  readonly nodes: readonly string[];
  /** By port, why it is not served although the others are. */
  readonly conflicts: ReadonlyMap<ServicePort, string>;
}

export type PlacementResult =
  | { readonly kind: 'placed'; readonly placement: Placement }
  /** No node of the fleet can serve the Service's address families. */
  | { readonly kind: 'no-nodes' }
  | { readonly kind: 'conflict'; readonly message: string };

interface Request {
  readonly service: ServiceObject;
  /** Those that could be served. */
  readonly ports: readonly ServicePort[];
  readonly nodes: readonly NodeEntry[];
  /** By listener id, who has it. Placing adds to it. */
  readonly taken: Map<string, string>;
  /** How a message calls the holder of a port; only what this tenant may know. */
  readonly holderText: (uid: string) => string;
}

/** Places a Service on every node where all its ports are free; one that is placed keeps its nodes and loses only ports. */
export function place(request: Request): PlacementResult {
  const { service, taken } = request;
  const able = request.nodes.filter((node) => bindAddressesFor(node, service).length > 0);
  if (able.length === 0) return { kind: 'no-nodes' };
  const kept = able.filter((node) => holdsAny(node, request));
  const conflicts = new Map<ServicePort, string>();
  for (const port of kept.length > 0 ? request.ports : []) {
    const holder = kept.map((node) => conflictOn(node, port, request)).find((found) => found !== undefined);
    if (holder !== undefined) conflicts.set(port, conflictMessage([port], [holder], kept.length, request));
  }
  const ports = request.ports.filter((port) => !conflicts.has(port));
  const free = able.filter((node) => ports.every((port) => conflictOn(node, port, request) === undefined));
  const chosen =
    kept.length > 0 && ports.length > 0 ? able.filter((node) => kept.includes(node) || free.includes(node)) : free;
  if (chosen.length === 0 || ports.length === 0) return { kind: 'conflict', message: refusalMessage(able, request) };
  const listeners = chosen.flatMap((node) => ports.flatMap((port) => listenersFor(node, port, service)));
  for (const listener of listeners) taken.set(listener.id, service.uid);
  return { kind: 'placed', placement: { listeners, nodes: chosen.map((node) => node.name), conflicts } };
}

/** Whether the Service has this port on any of the nodes. */
export function holdsPort(
  service: ServiceObject,
  port: ServicePort,
  { nodes, taken }: Pick<Request, 'nodes' | 'taken'>,
): boolean {
  return nodes.some((node) => listenersFor(node, port, service).some(({ id }) => taken.get(id) === service.uid));
}

function holdsAny(node: NodeEntry, { service, ports, taken }: Request): boolean {
  return ports.some((port) => holdsPort(service, port, { nodes: [node], taken }));
}

/** The UID of another Service that has the port on this node. */
function conflictOn(node: NodeEntry, port: ServicePort, { service, taken }: Request): string | undefined {
  for (const { id } of listenersFor(node, port, service)) {
    const holder = taken.get(id);
    if (holder !== undefined && holder !== service.uid) return holder;
  }
  return undefined;
}

function listenersFor(node: NodeEntry, port: ServicePort, service: ServiceObject): ListenerEntry[] {
  return bindAddressesFor(node, service).map((address) => {
    const place = { node: node.name, address, port: port.port, protocol: port.protocol as Protocol };
    return { kind: 'listener', id: listenerId(place), ...place, service: service.uid };
  });
}

function refusalMessage(able: readonly NodeEntry[], request: Request): string {
  const blocked = request.ports.filter((port) => able.some((node) => conflictOn(node, port, request) !== undefined));
  const holders = blocked.flatMap((port) => able.flatMap((node) => conflictOn(node, port, request) ?? []));
  return conflictMessage(blocked, holders, able.length, request);
}

function conflictMessage(
  ports: readonly ServicePort[],
  holders: readonly string[],
  nodes: number,
  { holderText }: Request,
): string {
  const by = listed([...new Set(holders.map(holderText))].sort());
  return `port ${listed(ports.map(portText))} is taken by ${by} on ${nodes === 1 ? 'the only node' : `the ${counted(nodes, 'node')}`} of the fleet, and a port of a node has one owner; use another port`;
}
