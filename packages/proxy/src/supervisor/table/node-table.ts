import {
  type Change,
  certificateId,
  diff,
  type Entry,
  entryIdOf,
  type RoutingTable,
  serviceId,
  tenantId,
} from '@weir/model/data-plane';

/**
 * The part of the fleet's table that one node serves: its own entry and listeners, the Services that those belong to,
 * their certificates, endpoints and tenants. Law: after any changes it equals the same part of the whole table.
 */
export class NodeTable {
  readonly #node: string;
  #part = new Map<string, Entry>();
  /** Listeners of this node, by Service UID. */
  #listeners = new Map<string, number>();
  /** Ids of endpoints entries of the whole fleet, by Service UID. */
  #endpoints = new Map<string, Set<string>>();
  /** Services of the part, by their tenant's id. */
  #tenants = new Map<string, number>();

  constructor(node: string) {
    this.#node = node;
  }

  get part(): RoutingTable {
    return { entries: this.#part };
  }

  /** A whole table instead of what was there; returns what changes in the part. */
  replace(table: RoutingTable): Change[] {
    this.#listeners = new Map();
    this.#endpoints = new Map();
    this.#tenants = new Map();
    for (const entry of table.entries.values()) this.#link(entry);
    const part = new Map<string, Entry>();
    const tenants: Entry[] = [];
    for (const entry of table.entries.values()) {
      if (entry.kind === 'tenant') tenants.push(entry);
      if (!this.#isOurs(entry)) continue;
      this.#countTenant(entry, 1);
      part.set(entry.id, entry);
    }
    // Whose they are is known only now.
    for (const tenant of tenants) if (this.#isOurs(tenant)) part.set(tenant.id, tenant);
    const changes =
      this.#part.size === 0
        ? Array.from(part.values(), (entry): Change => ({ kind: 'put', entry }))
        : diff(this.part, { entries: part });
    this.#part = part;
    return changes;
  }

  /** `table` is the one before with `changes` made; returns what changes in the part, in O(changes). */
  patch(changes: readonly Change[], table: RoutingTable): Change[] {
    const ids = new Set(changes.map(entryIdOf));
    const services = new Set<string>();
    for (const id of ids) {
      // Of the table before only our part is known, so that it is not kept.
      const old = this.#part.get(id);
      const entry = table.entries.get(id);
      this.#unlink(id, old);
      if (entry !== undefined) this.#link(entry);
      for (const each of [old, entry]) if (each?.kind === 'listener') services.add(each.service);
    }
    // A first or last listener here brings or takes all of its Service.
    for (const uid of services) {
      ids.add(serviceId(uid)).add(certificateId(uid));
      for (const id of this.#endpoints.get(uid) ?? []) ids.add(id);
    }
    const tenants = new Set<string>();
    for (const id of ids) {
      for (const each of [this.#part.get(id), table.entries.get(id)]) {
        if (each?.kind === 'service' && each.tenant !== null) tenants.add(tenantId(each.tenant));
      }
    }
    const changed = [...ids].flatMap((id) => (tenants.has(id) ? [] : this.#settle(id, table.entries.get(id))));
    // A first or last Service brings or takes its tenant: so tenants come last.
    return [...changed, ...[...tenants].flatMap((id) => this.#settle(id, table.entries.get(id)))];
  }

  #settle(id: string, entry: Entry | undefined): Change[] {
    const known = this.#part.get(id);
    if (known !== undefined) this.#countTenant(known, -1);
    if (entry !== undefined && this.#isOurs(entry)) {
      this.#countTenant(entry, 1);
      if (known === entry) return [];
      this.#part.set(id, entry);
      return [{ kind: 'put', entry }];
    }
    return this.#part.delete(id) ? [{ kind: 'delete', id }] : [];
  }

  #isOurs(entry: Entry): boolean {
    switch (entry.kind) {
      case 'node':
        return entry.name === this.#node;
      case 'listener':
        return entry.node === this.#node;
      case 'service':
        return this.#listeners.has(entry.uid);
      case 'endpoints':
      case 'certificate':
        return this.#listeners.has(entry.service);
      case 'tenant':
        return this.#tenants.has(entry.id);
      case 'problem':
        return false;
    }
  }

  #countTenant(entry: Entry, change: 1 | -1): void {
    if (entry.kind !== 'service' || entry.tenant === null) return;
    const id = tenantId(entry.tenant);
    const services = (this.#tenants.get(id) ?? 0) + change;
    if (services > 0) this.#tenants.set(id, services);
    else this.#tenants.delete(id);
  }

  #link(entry: Entry): void {
    if (entry.kind === 'listener' && entry.node === this.#node) {
      this.#listeners.set(entry.service, (this.#listeners.get(entry.service) ?? 0) + 1);
    } else if (entry.kind === 'endpoints') {
      const ids = this.#endpoints.get(entry.service);
      if (ids === undefined) this.#endpoints.set(entry.service, new Set([entry.id]));
      else ids.add(entry.id);
    }
  }

  #unlink(id: string, old: Entry | undefined): void {
    if (old?.kind === 'listener') {
      const left = (this.#listeners.get(old.service) ?? 0) - 1;
      if (left > 0) this.#listeners.set(old.service, left);
      else this.#listeners.delete(old.service);
    }
    const [kind, uid = ''] = id.split('/', 2);
    if (kind !== 'endpoints') return;
    const ids = this.#endpoints.get(uid);
    if (ids?.delete(id) === true && ids.size === 0) this.#endpoints.delete(uid);
  }
}
