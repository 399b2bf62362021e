// Which nodes hold the ports of a Service. The unit that is owned is (node address, protocol, port), and on ports that the fleet
// shares (pool, port, host): who has it keeps it.
import type { RefusalReason } from '../reason.ts';
import { reservationOf } from '../reserved-ports.ts';
import type { FleetSettings, ServicePort } from '../snapshot.ts';
import {
  type ListenerEntry,
  listenerId,
  type NodeEntry,
  type Protocol,
  sharedListenerId,
  type Verdict,
} from '../table/entry.ts';
import type { HeldService } from './held.ts';
import { bindAddressesFor } from './nodes.ts';
import { conflictMessage, type TakenPort } from './placement-text.ts';
import { claimKey, portKey } from './port-key.ts';
import { type HostQuestion, isSharedByFleet, type PortModes, takenHosts } from './shared-ports.ts';
import { placeOf } from './taken-ports.ts';

export interface Placement {
  readonly listeners: readonly ListenerEntry[];
  /** Sorted by name. */
  readonly nodes: readonly string[];
  /** By port, why it is not served although the others are. */
  readonly conflicts: ReadonlyMap<ServicePort, Verdict<RefusalReason>>;
}

export type PlacementResult =
  | { readonly kind: 'placed'; readonly placement: Placement }
  /** No node that may be used has an address of the Service's families. */
  | { readonly kind: 'no-nodes' }
  | { readonly kind: 'conflict'; readonly refusal: Verdict<RefusalReason> };

export interface PlacementRequest extends Omit<HostQuestion, 'pools'> {
  readonly fleet: FleetSettings;
  /** Those that could be served. */
  readonly ports: readonly ServicePort[];
  /** How it would have each. */
  readonly modes: PortModes;
  readonly held: Pick<HeldService, 'alone' | 'ports'> | undefined;
  /** That may be used, the best first. */
  readonly nodes: readonly NodeEntry[];
  /** How a message calls them together: `the fleet`, `pool "edge"`. */
  readonly where: string;
  /** Of whose nodes nothing new is put: names. */
  readonly cordoned: ReadonlySet<string>;
  /** In whose place it gets others where there are some: names. */
  readonly lost: ReadonlySet<string>;
  /** On so many nodes, as long as there are so many. */
  readonly wanted: number;
}

/**
 * Places a Service on nodes where all its ports are free; one that is placed keeps its nodes and loses only ports. In `taken` the
 * Service is given what it gets.
 */
export function place(asked: PlacementRequest): PlacementResult {
  const { service, taken, wanted, cordoned } = asked;
  const holding = nodesHolding(asked.ports, taken.listenersOf(service.uid));
  const request: Asking = { ...asked, holding, pools: new Set(asked.nodes.map(({ pool }) => pool)) };
  const able = request.nodes.filter(
    (node) => bindAddressesFor(node, service).length > 0 && (!cordoned.has(node.name) || holding.has(node.name)),
  );
  if (able.length === 0) return { kind: 'no-nodes' };
  const kept = able.filter(({ name }) => holding.has(name));
  const conflicts = new Map<ServicePort, Verdict<RefusalReason>>();
  for (const port of request.ports) {
    const lost = conflictOf(port, kept, request);
    if (lost !== undefined) conflicts.set(port, lost);
  }
  const [first] = conflicts.values();
  if (kept.length === 0 && first !== undefined) return { kind: 'conflict', refusal: first };
  const ports = request.ports.filter((port) => !conflicts.has(port));
  const chosen = ports.length === 0 ? [] : chosenOf(able, { kept, ports, wanted }, request);
  if (chosen.length === 0) return { kind: 'conflict', refusal: first ?? conflictOn(able, request.ports, request) };
  const listeners = chosen.flatMap((node) => ports.flatMap((port) => listenersFor(node, port, request)));
  taken.give(service.uid, listeners, request.hosts);
  return { kind: 'placed', placement: { listeners, nodes: chosen.map((node) => node.name), conflicts } };
}

/** Names of the nodes on which at least one of the ports is held. */
export function nodesHolding(ports: readonly ServicePort[], listeners: readonly ListenerEntry[]): ReadonlySet<string> {
  const wanted = new Set(ports.map(portKey));
  return new Set(listeners.filter((listener) => wanted.has(portKey(listener))).map(({ node }) => node));
}

/** Answers whether a port is one of those of the listeners, of which a node with many addresses makes very many. */
export function heldPorts(listeners: readonly ListenerEntry[]): (port: ServicePort) => boolean {
  const held = new Set(listeners.map(portKey));
  return (port) => held.has(portKey(port));
}

interface Asking extends PlacementRequest, HostQuestion {
  /** Names of the nodes that hold some of the ports for it. */
  readonly holding: ReadonlySet<string>;
}

/** Why a port is not to be had although the others are, on nodes that are kept; where its hosts are taken, it is to be had nowhere. */
function conflictOf(
  port: ServicePort,
  kept: readonly NodeEntry[],
  request: Asking,
): Verdict<RefusalReason> | undefined {
  const lost = request.modes.get(port) === 'shared' ? takenHosts(port, request) : undefined;
  if (lost !== undefined) return lost;
  return takenOn(kept, port, request) === undefined ? undefined : conflictOn(kept, [port], request);
}

interface Choice {
  readonly kept: readonly NodeEntry[];
  readonly ports: readonly ServicePort[];
  readonly wanted: number;
}

/** Those that it has, then the first that are free, and of those that it has the lost ones last; sorted by name. */
function chosenOf(able: readonly NodeEntry[], { kept, ports, wanted }: Choice, request: Asking): NodeEntry[] {
  const chosen = kept.filter(({ name }) => !request.lost.has(name)).slice(0, wanted);
  for (const node of able) {
    if (chosen.length === wanted) break;
    const isFree = !kept.includes(node) && ports.every((port) => holderOn(node, port, request) === undefined);
    if (isFree) chosen.push(node);
  }
  chosen.push(...kept.filter(({ name }) => request.lost.has(name)).slice(0, wanted - chosen.length));
  return chosen.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Who else has the port on this node, as a message calls it. */
function holderOn(node: NodeEntry, port: ServicePort, request: Asking): string | undefined {
  const { service, taken, modes, held, fleet, holding, holderText } = request;
  const isShared = modes.get(port) === 'shared';
  // What it had before the port was reserved or shared it keeps where it has it, and nowhere else, unless all its nodes are gone.
  const isKept = (had: { has(key: string): boolean } | undefined): boolean =>
    holding.has(node.name) || (holding.size === 0 && had?.has(portKey(port)) === true);
  if (reservationOf(port.port, fleet) !== undefined && !isKept(held?.ports))
    return 'the nodes, which need it themselves';
  if (!isShared && isSharedByFleet(port, fleet) && !isKept(held?.alone))
    return 'the fleet, which shares it by host names';
  for (const listener of listenersFor(node, port, request)) {
    const place = placeOf(listener);
    const others = isShared ? [] : taken.sharersOf(place);
    for (const uid of [taken.holderOf(place) ?? service.uid, ...others])
      if (uid !== service.uid) return holderText(uid);
  }
  for (const host of isShared ? request.hosts : []) {
    for (const [uid, nodes] of taken.claimantsOf(claimKey(port, host))) {
      if (uid !== service.uid && nodes.has(node.name)) return holderText(uid);
    }
  }
  return undefined;
}

function listenersFor(node: NodeEntry, port: ServicePort, { service, modes }: Asking): ListenerEntry[] {
  return bindAddressesFor(node, service).map((address) => {
    const protocol = port.protocol as Protocol;
    const place = { node: node.name, address, port: port.port, protocol, service: service.uid };
    return modes.get(port) === 'shared'
      ? { kind: 'listener', id: sharedListenerId(place), ...place, shared: true }
      : { kind: 'listener', id: listenerId(place), ...place };
  });
}

/** Undefined: nobody else has it on any of the nodes. */
function takenOn(nodes: readonly NodeEntry[], port: ServicePort, request: Asking): TakenPort | undefined {
  const holders = nodes.map((node) => holderOn(node, port, request)).filter((holder) => holder !== undefined);
  return holders.length === 0 ? undefined : { port, nodes: holders.length, holders: [...new Set(holders)].sort() };
}

function conflictOn(
  nodes: readonly NodeEntry[],
  ports: readonly ServicePort[],
  request: Asking,
): Verdict<RefusalReason> {
  const taken = ports.map((port) => takenOn(nodes, port, request)).filter((port) => port !== undefined);
  return { reason: 'PortConflict', message: conflictMessage(taken, nodes.length, request.where) };
}
