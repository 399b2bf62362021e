import {
  type EndpointsEntry,
  type Entry,
  type ListenerEntry,
  listenerId,
  type NodeEntry,
  type ServiceEntry,
} from '../table/entry.ts';
import { EMPTY_TABLE, possiblyChangedIds, type RoutingTable } from '../table/table.ts';
import { countEndpoints, type EndpointCount, type Readiness, readinessOf } from './readiness.ts';

/** What the table holds for one Service. */
export interface ServiceTablePart {
  readonly entry: ServiceEntry;
  /** Sorted by node, port, protocol, address. */
  readonly listeners: readonly ListenerEntry[];
  readonly endpoints: EndpointCount;
  readonly readiness: Readiness;
}

/** What a new table says otherwise than the one before. */
export interface TableChangeSet {
  /** UIDs of Services, those that are gone included. */
  readonly services: ReadonlySet<string>;
  /** As they were and as they are. */
  readonly nodes: readonly NodeEntry[];
  /** Names of the nodes on which a port came, went or changed hands. */
  readonly listenerNodes: ReadonlySet<string>;
}

type Binding = Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>;

interface ServiceEntries {
  service: ServiceEntry | undefined;
  readonly listeners: Map<string, ListenerEntry>;
  readonly endpoints: Map<string, EndpointsEntry>;
  /** Of these entries; undefined: it was not asked for since they changed. */
  part: ServiceTablePart | undefined;
}

/** A table by Service, kept up with tables that share most of their entries: those that are the same objects cost a look each. */
export class TableIndex {
  #table: RoutingTable = EMPTY_TABLE;
  /** By Service UID. */
  readonly #services = new Map<string, ServiceEntries>();
  readonly #nodes = new Map<string, NodeEntry>();
  /** How many Services share a place, by the id that its listener would have alone. */
  readonly #sharerCounts = new Map<string, number>();

  get nodes(): ReadonlyMap<string, NodeEntry> {
    return this.#nodes;
  }

  update(table: RoutingTable): TableChangeSet {
    const before = this.#table.entries;
    this.#table = table;
    const gone: Entry[] = [];
    const come: Entry[] = [];
    for (const id of possiblyChangedIds(before, table.entries)) {
      const old = before.get(id);
      const entry = table.entries.get(id);
      if (old === entry) continue;
      if (old !== undefined) gone.push(old);
      if (entry !== undefined) come.push(entry);
    }
    // All that goes before all that comes: a listener may pass from one Service to another.
    for (const entry of gone) this.#remove(entry);
    for (const entry of come) this.#put(entry);
    return changeSetOf([...gone, ...come]);
  }

  uids(): Iterable<string> {
    return this.#services.keys();
  }

  entryOf(uid: string): ServiceEntry | undefined {
    return this.#services.get(uid)?.service;
  }

  /** A Service, or several that share it, holds this place. */
  isAllocated(place: Binding): boolean {
    const id = listenerId(place);
    return this.#table.entries.has(id) || this.#sharerCounts.has(id);
  }

  /** Undefined: the table does not know such a Service. */
  partOf(uid: string): ServiceTablePart | undefined {
    const entries = this.#services.get(uid);
    const entry = entries?.service;
    if (entries === undefined || entry === undefined) return undefined;
    entries.part ??= {
      entry,
      listeners: [...entries.listeners.values()].sort(byBinding),
      endpoints: countEndpoints(entry, entries.endpoints.values()),
      readiness: readinessOf(entry, entries.endpoints.values()),
    };
    return entries.part;
  }

  #put(entry: Entry): void {
    if (entry.kind === 'listener' && entry.shared === true) this.#countSharer(entry, 1);
    if (entry.kind === 'service') this.#of(entry.uid).service = entry;
    else if (entry.kind === 'listener') this.#of(entry.service).listeners.set(entry.id, entry);
    else if (entry.kind === 'endpoints') this.#of(entry.service).endpoints.set(entry.id, entry);
    else if (entry.kind === 'node') this.#nodes.set(entry.name, entry);
  }

  #remove(entry: Entry): void {
    if (entry.kind === 'node') this.#nodes.delete(entry.name);
    if (entry.kind === 'listener' && entry.shared === true) this.#countSharer(entry, -1);
    const uid = serviceOf(entry);
    const entries = uid === undefined ? undefined : this.#services.get(uid);
    if (uid === undefined || entries === undefined) return;
    entries.part = undefined;
    if (entry.kind === 'service') entries.service = undefined;
    else if (entry.kind === 'listener') entries.listeners.delete(entry.id);
    else if (entry.kind === 'endpoints') entries.endpoints.delete(entry.id);
    const isEmpty = entries.service === undefined && entries.listeners.size === 0 && entries.endpoints.size === 0;
    if (isEmpty) this.#services.delete(uid);
  }

  #countSharer(place: Binding, more: 1 | -1): void {
    const id = listenerId(place);
    const shares = (this.#sharerCounts.get(id) ?? 0) + more;
    if (shares === 0) this.#sharerCounts.delete(id);
    else this.#sharerCounts.set(id, shares);
  }

  /** To be changed. */
  #of(uid: string): ServiceEntries {
    const known = this.#services.get(uid);
    if (known !== undefined) {
      known.part = undefined;
      return known;
    }
    const entries: ServiceEntries = { service: undefined, listeners: new Map(), endpoints: new Map(), part: undefined };
    this.#services.set(uid, entries);
    return entries;
  }
}

function changeSetOf(changed: readonly Entry[]): TableChangeSet {
  const services = new Set<string>();
  const nodes: NodeEntry[] = [];
  const listenerNodes = new Set<string>();
  for (const entry of changed) {
    const uid = serviceOf(entry);
    if (uid !== undefined) services.add(uid);
    if (entry.kind === 'node') nodes.push(entry);
    if (entry.kind === 'listener') listenerNodes.add(entry.node);
  }
  return { services, nodes, listenerNodes };
}

function serviceOf(entry: Entry): string | undefined {
  if (entry.kind === 'service') return entry.uid;
  return entry.kind === 'listener' || entry.kind === 'endpoints' ? entry.service : undefined;
}

function byBinding(a: ListenerEntry, b: ListenerEntry): number {
  if (a.node !== b.node) return a.node < b.node ? -1 : 1;
  return a.port - b.port || (a.id < b.id ? -1 : 1);
}
