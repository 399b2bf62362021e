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

/** What strangers are believed by. */
export interface AssumedReportsInput {
  readonly table: RoutingTable;
  readonly snapshot: Pick<Snapshot, 'services'>;
}

/**
 * Proxies that are there and cannot be understood, since they are of another version. What is believed of them: whatever is published
 * for their node they have, and nothing else. So no address is withdrawn that works, and none is published that nobody has confirmed.
 * They may be there for days, and are asked for several times a second: what they are believed to say stays the same list until it is another.
 */
export class UnknownVersionProxies {
  #table: RoutingTable = EMPTY_TABLE;
  #services: Snapshot['services'] = [];
  /** By id, those of the nodes below. */
  readonly #listeners = new Map<string, ListenerEntry>();
  /** By node for which only strangers speak, what they are believed to say. */
  #reports: ReadonlyMap<string, readonly ListenerReport[]> = new Map();

  /** With what is believed of those among them. */
  withAssumedReports(
    heartbeats: readonly Heartbeat[],
    { table, snapshot: { services } }: AssumedReportsInput,
  ): readonly Heartbeat[] {
    const nodes = unknownVersionNodes(heartbeats);
    if (nodes.size === 0 && this.#reports.size === 0) return heartbeats;
    const isOther = nodes.size !== this.#reports.size || [...nodes].some((node) => !this.#reports.has(node));
    if (isOther) this.#reset();
    const isMoved = nodes.size > 0 && this.#applyTable(table, nodes);
    if (isOther || isMoved || services !== this.#services) this.#reports = this.#reportsFor(nodes, services);
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

  /** Returns whether that makes a difference. Costs what has changed. */
  #applyTable(table: RoutingTable, nodes: ReadonlySet<string>): boolean {
    const changes = diff(this.#table, table);
    this.#table = table;
    const own = new Set([...nodes].map(nodeId));
    let isMoved = false;
    for (const change of changes) {
      const id = entryIdOf(change);
      const entry = change.kind === 'put' && change.entry.kind === 'listener' ? change.entry : undefined;
      if (entry !== undefined && nodes.has(entry.node)) this.#listeners.set(id, entry);
      else if (!this.#listeners.delete(id) && !own.has(id)) continue;
      isMoved = true;
    }
    return isMoved;
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

/** Names of those for whom nobody speaks who can be understood. */
function unknownVersionNodes(heartbeats: readonly Heartbeat[]): ReadonlySet<string> {
  const strange = new Set(heartbeats.flatMap(({ node, unreadable }) => (unreadable === undefined ? [] : node)));
  if (strange.size === 0) return strange;
  for (const { node, unreadable, draining } of heartbeats)
    if (unreadable === undefined && !draining) strange.delete(node);
  return strange;
}

function publishedAddressesOf(node: string, { entries }: RoutingTable): ReadonlySet<string> {
  const entry = entries.get(nodeId(node));
  return new Set(entry?.kind === 'node' ? entry.publishedAddresses : []);
}

/** What one node said last, and what of it was an error: a life with nothing else. */
interface LastReport {
  readonly listeners: readonly ListenerReport[];
  readonly errors: Heartbeat | undefined;
}

/**
 * What proxies said that they cannot open. One that is silent, or has just begun and knows no table yet, has not opened it
 * meanwhile: else a Service would be told that all is well, and soon after that it is not.
 */
export class LastListenerErrors {
  readonly #lastReportByNode = new Map<string, LastReport>();

  /** The heartbeats, with the errors of those who say nothing now. */
  withLastErrors(heartbeats: readonly Heartbeat[], { entries }: RoutingTable): readonly Heartbeat[] {
    const speaking = new Set<string>();
    for (const heartbeat of heartbeats) {
      const { node, applied, unreadable, draining, listeners } = heartbeat;
      if (applied === null || unreadable !== undefined || draining) continue;
      speaking.add(node);
      // The same list until it is another.
      if (this.#lastReportByNode.get(node)?.listeners !== listeners)
        this.#lastReportByNode.set(node, { listeners, errors: errorsIn(heartbeat) });
    }
    const silent: Heartbeat[] = [];
    for (const [node, { errors }] of this.#lastReportByNode) {
      if (speaking.has(node)) continue;
      if (!entries.has(nodeId(node))) this.#lastReportByNode.delete(node);
      else if (errors !== undefined) silent.push(errors);
    }
    return silent.length === 0 ? heartbeats : [...heartbeats, ...silent];
  }
}

/** As the last life of its node, so that it counts only for what no other one speaks of. */
function errorsIn(heartbeat: Heartbeat): Heartbeat | undefined {
  const listeners = heartbeat.listeners.filter(({ error }) => error !== null);
  return listeners.length === 0 ? undefined : { ...heartbeat, life: Number.MAX_SAFE_INTEGER, listeners };
}
