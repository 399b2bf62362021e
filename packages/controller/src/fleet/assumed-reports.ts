// Fills in the listener reports of proxies that are silent, or whose heartbeats cannot be decoded.
import {
  diff,
  EMPTY_TABLE,
  entryIdOf,
  type Heartbeat,
  type ListenerEntry,
  type ListenerReport,
  nodeId,
  type RoutingTable,
  type Snapshot,
} from '@weir/model';

export interface AssumedReportsInput {
  readonly table: RoutingTable;
  readonly snapshot: Pick<Snapshot, 'services'>;
}

/**
 * Assumes that an unknown-version proxy has opened a listener if the status of its Service already shows an address of the node. This
 * assumption neither withdraws a working address nor publishes an unconfirmed address. The list of assumed reports stays the same
 * object until a report changes, because the list is requested several times a second, perhaps for days.
 */
export class UnknownVersionProxies {
  #table: RoutingTable = EMPTY_TABLE;
  #services: Snapshot['services'] = [];
  /** The listeners of the nodes in `#reports`, by listener id. */
  readonly #listeners = new Map<string, ListenerEntry>();
  /** The assumed reports by node name, for the nodes that `unknownVersionNodes` returns. */
  #reports: ReadonlyMap<string, readonly ListenerReport[]> = new Map();

  /** Returns the heartbeats, and adds the assumed reports to the heartbeats of unknown-version proxies. */
  withAssumedReports(
    heartbeats: readonly Heartbeat[],
    { table, snapshot: { services } }: AssumedReportsInput,
  ): readonly Heartbeat[] {
    const nodes = unknownVersionNodes(heartbeats);
    if (nodes.size === 0 && this.#reports.size === 0) return heartbeats;
    const haveNodesChanged = nodes.size !== this.#reports.size || [...nodes].some((node) => !this.#reports.has(node));
    if (haveNodesChanged) this.#reset();
    const hasTableChanged = nodes.size > 0 && this.#applyTable(table, nodes);
    if (haveNodesChanged || hasTableChanged || services !== this.#services)
      this.#reports = this.#reportsFor(nodes, services);
    this.#services = services;
    return heartbeats.map((each) => {
      const listeners = each.unreadable === undefined ? undefined : this.#reports.get(each.node);
      return listeners === undefined ? each : { ...each, listeners };
    });
  }

  #reset(): void {
    this.#table = EMPTY_TABLE;
    this.#listeners.clear();
  }

  /**
   * Applies the changes since the last table. Returns whether a listener on one of `nodes`, or the entry of such a node, changed. Costs
   * O(changed entries).
   */
  #applyTable(table: RoutingTable, nodes: ReadonlySet<string>): boolean {
    const changes = diff(this.#table, table);
    this.#table = table;
    const nodeIds = new Set([...nodes].map(nodeId));
    let hasChanged = false;
    for (const change of changes) {
      const id = entryIdOf(change);
      const entry = change.kind === 'put' && change.entry.kind === 'listener' ? change.entry : undefined;
      if (entry !== undefined && nodes.has(entry.node)) this.#listeners.set(id, entry);
      else if (!this.#listeners.delete(id) && !nodeIds.has(id)) continue;
      hasChanged = true;
    }
    return hasChanged;
  }

  #reportsFor(
    nodes: ReadonlySet<string>,
    services: Snapshot['services'],
  ): ReadonlyMap<string, readonly ListenerReport[]> {
    const addresses = new Map([...nodes].map((name) => [name, publishedAddressesOf(name, this.#table)]));
    const published = new Map(services.map(({ uid, publishedIPs }) => [uid, publishedIPs]));
    const reports = new Map([...nodes].map((name): [string, ListenerReport[]] => [name, []]));
    for (const { id, service, node } of this.#listeners.values()) {
      const isPublished = published.get(service)?.some((address) => addresses.get(node)?.has(address)) === true;
      if (isPublished) reports.get(node)?.push({ id, service, bound: true, listening: true, error: null });
    }
    return reports;
  }
}

/** Returns the names of the nodes that have an unknown-version proxy, and whose other proxies, if any, are draining. */
function unknownVersionNodes(heartbeats: readonly Heartbeat[]): ReadonlySet<string> {
  const names = new Set(heartbeats.flatMap(({ node, unreadable }) => (unreadable === undefined ? [] : node)));
  if (names.size === 0) return names;
  for (const { node, unreadable, draining } of heartbeats)
    if (unreadable === undefined && !draining) names.delete(node);
  return names;
}

function publishedAddressesOf(node: string, { entries }: RoutingTable): ReadonlySet<string> {
  const entry = entries.get(nodeId(node));
  return new Set(entry?.kind === 'node' ? entry.publishedAddresses : []);
}

/** The last listener reports of a node. */
interface LastReport {
  readonly listeners: readonly ListenerReport[];
  /** A heartbeat that contains only the listeners that failed to open; undefined if no listener failed. */
  readonly errors: Heartbeat | undefined;
}

/**
 * Remembers which listeners the proxies failed to open. A proxy that is silent, or that has not applied a table yet, does not report
 * these failures. Without this memory, the Service of a failed listener would be reported as programmed, and soon after as failed
 * again.
 */
export class LastListenerErrors {
  readonly #lastReportByNode = new Map<string, LastReport>();

  /** Returns a heartbeat with the last errors for each node that reports no listeners now. */
  update(heartbeats: readonly Heartbeat[], { entries }: RoutingTable): readonly Heartbeat[] {
    const reporting = new Set<string>();
    for (const heartbeat of heartbeats) {
      const { node, applied, unreadable, draining, listeners } = heartbeat;
      if (applied === null || unreadable !== undefined || draining) continue;
      reporting.add(node);
      // `listeners` is the same object until a report of the node changes.
      if (this.#lastReportByNode.get(node)?.listeners !== listeners)
        this.#lastReportByNode.set(node, { listeners, errors: errorsIn(heartbeat) });
    }
    const silent: Heartbeat[] = [];
    for (const [node, { errors }] of this.#lastReportByNode) {
      if (reporting.has(node)) continue;
      if (!entries.has(nodeId(node))) this.#lastReportByNode.delete(node);
      else if (errors !== undefined) silent.push(errors);
    }
    return silent;
  }
}

/**
 * Returns a heartbeat with the failed listeners; undefined if no listener failed. Uses the highest possible incarnation number: if two
 * reports say that a listener failed, the report with the lower number counts, so that a real report takes precedence.
 */
function errorsIn(heartbeat: Heartbeat): Heartbeat | undefined {
  const listeners = heartbeat.listeners.filter(({ error }) => error !== null);
  return listeners.length === 0 ? undefined : { ...heartbeat, life: Number.MAX_SAFE_INTEGER, listeners };
}
