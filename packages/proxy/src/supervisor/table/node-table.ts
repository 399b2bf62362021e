import {
  type Change,
  diff,
  type Entry,
  entryIdOf,
  type HttpRouteEntry,
  type Route,
  type RouteKey,
  type RoutingTable,
  serviceId,
  servicePortOf,
  tenantId,
} from '@weir/model/data-plane';

/**
 * The part of the fleet's table that one node serves: the node's entry and listeners, the Services of these listeners,
 * the certificates, endpoints, error pages and tenants of these Services, and the HTTP routes to these Services.
 * Invariant: after each `replace` and `patch`, `part` contains exactly these entries of the complete table.
 */
export class NodeTable {
  readonly #node: string;
  #part = new Map<string, Entry>();
  /** The number of listeners on this node, by Service UID. */
  #listenerCounts = new Map<string, number>();
  /** By Service UID, the ids of the entries in the complete table that belong to `part` if the Service does. */
  #partIds = new Map<string, Set<string>>();
  /** The UIDs of the backends of all HTTP routes in the complete table, by entry id. */
  #backends = new Map<string, ReadonlySet<string>>();
  /** The number of Services in `part`, by the entry id of their tenant. */
  #serviceCounts = new Map<string, number>();

  constructor(node: string) {
    this.#node = node;
  }

  get part(): RoutingTable {
    return { entries: this.#part };
  }

  /** Takes a new complete table. Returns the changes of `part`. */
  replace(table: RoutingTable): Change[] {
    this.#listenerCounts = new Map();
    this.#partIds = new Map();
    this.#backends = new Map();
    this.#serviceCounts = new Map();
    for (const entry of table.entries.values()) this.#link(entry);
    const part = new Map<string, Entry>();
    const tenants: Entry[] = [];
    for (const entry of table.entries.values()) {
      if (entry.kind === 'tenant') tenants.push(entry);
      if (!this.#isInPart(entry)) continue;
      this.#countTenant(entry, 1);
      part.set(entry.id, entry);
    }
    // Tenants come last, because the Services in the part are known only now.
    for (const tenant of tenants) if (this.#isInPart(tenant)) part.set(tenant.id, tenant);
    const changes =
      this.#part.size === 0
        ? Array.from(part.values(), (entry): Change => ({ kind: 'put', entry }))
        : diff(this.part, { entries: part });
    this.#part = part;
    return changes;
  }

  /**
   * Takes `changes` and `table`, the complete table after these changes. Returns the changes of `part`, in time
   * proportional to the number of `changes`.
   */
  patch(changes: readonly Change[], table: RoutingTable): Change[] {
    const ids = new Set(changes.map(entryIdOf));
    const services = new Set<string>();
    for (const id of ids) {
      // Reads the old entry from `#part`, so that the previous complete table need not be kept.
      const old = this.#part.get(id);
      const entry = table.entries.get(id);
      this.#unlink(id, old);
      if (entry !== undefined) this.#link(entry);
      for (const each of [old, entry]) if (each?.kind === 'listener') services.add(each.service);
    }
    // A Service's first listener on this node adds all entries of the Service, and its last listener removes them.
    for (const uid of services) {
      ids.add(serviceId(uid));
      for (const id of this.#partIds.get(uid) ?? []) ids.add(id);
    }
    const tenants = new Set<string>();
    for (const id of ids) {
      for (const each of [this.#part.get(id), table.entries.get(id)]) {
        if (each?.kind === 'service' && each.tenant !== null) tenants.add(tenantId(each.tenant));
      }
    }
    const changed = [...ids].flatMap((id) => (tenants.has(id) ? [] : this.#updateEntry(id, table.entries.get(id))));
    // Tenants come last, because a tenant's first Service adds the tenant's entry, and its last Service removes the
    // entry.
    return [...changed, ...[...tenants].flatMap((id) => this.#updateEntry(id, table.entries.get(id)))];
  }

  #updateEntry(id: string, entry: Entry | undefined): Change[] {
    const known = this.#part.get(id);
    if (known !== undefined) this.#countTenant(known, -1);
    if (entry !== undefined && this.#isInPart(entry)) {
      this.#countTenant(entry, 1);
      if (known === entry) return [];
      this.#part.set(id, entry);
      return [{ kind: 'put', entry }];
    }
    return this.#part.delete(id) ? [{ kind: 'delete', id }] : [];
  }

  #isInPart(entry: Entry): boolean {
    switch (entry.kind) {
      case 'node':
        return entry.name === this.#node;
      case 'listener':
        return entry.node === this.#node;
      case 'service':
        return this.#listenerCounts.has(entry.uid);
      case 'endpoints':
      case 'certificate':
      case 'error-pages':
        return this.#listenerCounts.has(entry.service);
      case 'tenant':
        return this.#serviceCounts.has(entry.id);
      case 'http-route':
        return entry.route.backends.some(({ service }) => this.#listenerCounts.has(service));
      case 'problem':
        return false;
    }
  }

  #countTenant(entry: Entry, change: 1 | -1): void {
    if (entry.kind !== 'service' || entry.tenant === null) return;
    const id = tenantId(entry.tenant);
    const services = (this.#serviceCounts.get(id) ?? 0) + change;
    if (services > 0) this.#serviceCounts.set(id, services);
    else this.#serviceCounts.delete(id);
  }

  #link(entry: Entry): void {
    if (entry.kind === 'listener' && entry.node === this.#node) {
      this.#listenerCounts.set(entry.service, (this.#listenerCounts.get(entry.service) ?? 0) + 1);
    } else if (entry.kind === 'http-route') {
      const backends = backendsOf(entry);
      this.#backends.set(entry.id, backends);
      for (const uid of backends) this.#addPartId(uid, entry.id);
    } else if (SERVICE_PART_KINDS.includes(entry.kind) && 'service' in entry) this.#addPartId(entry.service, entry.id);
  }

  #unlink(id: string, old: Entry | undefined): void {
    if (old?.kind === 'listener') {
      const left = (this.#listenerCounts.get(old.service) ?? 0) - 1;
      if (left > 0) this.#listenerCounts.set(old.service, left);
      else this.#listenerCounts.delete(old.service);
    }
    const backends = this.#backends.get(id);
    if (backends !== undefined) {
      this.#backends.delete(id);
      for (const uid of backends) this.#deletePartId(uid, id);
    }
    const [kind, uid = ''] = id.split('/', 2);
    if (SERVICE_PART_KINDS.includes(kind)) this.#deletePartId(uid, id);
  }

  #addPartId(uid: string, id: string): void {
    const ids = this.#partIds.get(uid);
    if (ids === undefined) this.#partIds.set(uid, new Set([id]));
    else ids.add(id);
  }

  #deletePartId(uid: string, id: string): void {
    const ids = this.#partIds.get(uid);
    if (ids?.delete(id) === true && ids.size === 0) this.#partIds.delete(uid);
  }
}

function backendsOf({ route }: HttpRouteEntry): ReadonlySet<string> {
  return new Set(route.backends.map(({ service }) => service));
}

/** The kinds of entries that a Service has besides its own entry and its listeners. */
const SERVICE_PART_KINDS: readonly (string | undefined)[] = ['endpoints', 'certificate', 'error-pages'];

/**
 * The routes of this node, grouped by Service port. All routes of a Service port have the same endpoints, so they share
 * one object of type `P`, for example a Maglev table or the health of the endpoints. Ports of different Services share
 * nothing.
 */
export class RoutesByPort<P extends { readonly listeners: Set<RouteKey> }> {
  readonly #createPort: () => P;
  readonly #ports = new Map<string, P>();
  readonly #nameByRoute = new Map<RouteKey, string>();

  constructor(createPort: () => P) {
    this.#createPort = createPort;
  }

  /** The ports by name. A name consists of the UID of the Service, the protocol and the port number. */
  get ports(): ReadonlyMap<string, P> {
    return this.#ports;
  }

  nameOf(key: RouteKey): string | undefined {
    return this.#nameByRoute.get(key);
  }

  portOf(key: RouteKey): P | undefined {
    return this.#ports.get(this.#nameByRoute.get(key) ?? '');
  }

  /**
   * Moves the route with this key to the port of `route`, or removes it from its port if `route` is undefined. A port
   * without routes is removed. Returns the name of the route's port, whether the route has just joined this port, and
   * the name of the port that the route left.
   */
  assign(key: RouteKey, route: Route | undefined): PortAssignment {
    const before = this.#nameByRoute.get(key);
    const name = route && portName(route);
    if (before === name) return { name, isNew: false, left: undefined };
    if (before !== undefined) this.#leave(key, before);
    if (name !== undefined) {
      const port = this.#ports.get(name) ?? this.#createPort();
      this.#ports.set(name, port);
      port.listeners.add(key);
      this.#nameByRoute.set(key, name);
    }
    return { name, isNew: name !== undefined, left: before };
  }

  #leave(key: RouteKey, name: string): void {
    this.#nameByRoute.delete(key);
    const port = this.#ports.get(name);
    port?.listeners.delete(key);
    if (port?.listeners.size === 0) this.#ports.delete(name);
  }
}

export interface PortAssignment {
  readonly name: string | undefined;
  readonly isNew: boolean;
  readonly left: string | undefined;
}

function portName({ service, listener }: Route): string {
  return `${service.uid}/${listener.protocol}/${servicePortOf(listener)}`;
}
