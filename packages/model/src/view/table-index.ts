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

/** The part of the table that belongs to one Service. */
export interface ServiceTablePart {
  readonly entry: ServiceEntry;
  /** The listeners of the Service, sorted by node, port, protocol, address. */
  readonly listeners: readonly ListenerEntry[];
  readonly endpoints: EndpointCount;
  readonly readiness: Readiness;
}

/** The differences between a new table and the former table. */
export interface TableChangeSet {
  /** UIDs of the Services whose entries changed, including deleted Services. */
  readonly services: ReadonlySet<string>;
  /** The former and the new entries of changed nodes. */
  readonly nodes: readonly NodeEntry[];
  /** Names of the nodes with a listener that was added, removed or changed. */
  readonly listenerNodes: ReadonlySet<string>;
}

type Binding = Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>;

interface ServiceEntries {
  service: ServiceEntry | undefined;
  readonly listeners: Map<string, ListenerEntry>;
  readonly endpoints: Map<string, EndpointsEntry>;
  /** Derived from the fields above on demand; undefined after a change. */
  part: ServiceTablePart | undefined;
}

/** Indexes a table by Service. An update costs O(changes) if `apply` derived one table from the other. */
export class TableIndex {
  #table: RoutingTable = EMPTY_TABLE;
  /** The entries of each Service, by UID. */
  readonly #services = new Map<string, ServiceEntries>();
  readonly #nodes = new Map<string, NodeEntry>();
  /** By binding (`listenerId`), the number of Services that share the binding. */
  readonly #sharerCounts = new Map<string, number>();

  get nodes(): ReadonlyMap<string, NodeEntry> {
    return this.#nodes;
  }

  update(table: RoutingTable): TableChangeSet {
    const before = this.#table.entries;
    this.#table = table;
    const removed: Entry[] = [];
    const added: Entry[] = [];
    for (const id of possiblyChangedIds(before, table.entries)) {
      const old = before.get(id);
      const entry = table.entries.get(id);
      if (old === entry) continue;
      if (old !== undefined) removed.push(old);
      if (entry !== undefined) added.push(entry);
    }
    // Removes all old entries first, because a listener may pass from one Service to another.
    for (const entry of removed) this.#remove(entry);
    for (const entry of added) this.#put(entry);
    return changeSetOf([...removed, ...added]);
  }

  uids(): Iterable<string> {
    return this.#services.keys();
  }

  entryOf(uid: string): ServiceEntry | undefined {
    return this.#services.get(uid)?.service;
  }

  /** Whether a binding is allocated, to one Service or to several that share it. */
  isAllocated(binding: Binding): boolean {
    const id = listenerId(binding);
    return this.#table.entries.has(id) || this.#sharerCounts.has(id);
  }

  /** Returns the part of the table that belongs to a Service; undefined if the table has no such Service. */
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
    if (entry.kind === 'service') this.#modify(entry.uid).service = entry;
    else if (entry.kind === 'listener') this.#modify(entry.service).listeners.set(entry.id, entry);
    else if (entry.kind === 'endpoints') this.#modify(entry.service).endpoints.set(entry.id, entry);
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

  #countSharer(binding: Binding, change: 1 | -1): void {
    const id = listenerId(binding);
    const count = (this.#sharerCounts.get(id) ?? 0) + change;
    if (count === 0) this.#sharerCounts.delete(id);
    else this.#sharerCounts.set(id, count);
  }

  /** Returns the entries of a Service for a change. Creates them if needed, and drops the part that was derived from them. */
  #modify(uid: string): ServiceEntries {
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
