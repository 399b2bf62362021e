// What the routing table says of limits, brought to the shared sheet and to the workers. On this proxy a limit of a tenant
// applies as it stands; a share of it, leased from the fleet, would be written in `#limitTenant`.
import {
  type Change,
  type Entry,
  type ServiceEntry,
  type ServiceLimits,
  type TenantEntry,
  type TenantLimits,
  tenantId,
} from '@weir/model/data-plane';
import type { LimiterConfig } from './budget.ts';
import type { LimiterRegistry } from './limit-book.ts';
import { UNLIMITED_ROW } from './limit-sheet.ts';
import type { LimiterRows } from './worker-limits.ts';

interface LimitedService {
  readonly uid: string;
  /** While its tenant is in dispute a Service that still serves draws on the one who had it; null: never known. */
  readonly tenant: string | null;
  readonly rows: LimiterRows;
}

export class TableLimits {
  readonly #registry: LimiterRegistry;
  /** By entry id. */
  readonly #services = new Map<string, LimitedService>();
  /** How many Services draw on each tenant, by its entry's id. */
  readonly #tenants = new Map<string, { readonly tenant: string; services: number }>();

  constructor(book: LimiterRegistry) {
    this.#registry = book;
  }

  /** `entries` with the changes made. `rows` are for the workers; `left` is for `release`, when they were told. */
  apply(changes: readonly Change[], entries: ReadonlyMap<string, Entry>): { rows: LimiterRows[]; left: string[] } {
    const rows: LimiterRows[] = [];
    const left: string[] = [];
    for (const change of changes) {
      // Most of a large table are endpoints and listeners, which nothing here goes by.
      if (change.kind === 'put' && change.entry.kind !== 'service' && change.entry.kind !== 'tenant') continue;
      const id = change.kind === 'put' ? change.entry.id : change.id;
      const entry = entries.get(id);
      if (entry?.kind === 'tenant') this.#limitTenant(entry);
      const before = this.#services.get(id);
      if (entry?.kind === 'service') rows.push(this.#placeService(entry, { before, entries, left }));
      else if (before !== undefined) rows.push(this.#removeService(id, before, left));
    }
    return { rows, left: left.filter((owner) => !this.#isUsed(owner)) };
  }

  release(left: readonly string[], mark: number): void {
    for (const owner of left) this.#registry.release(owner, mark);
  }

  /** All at once, for a worker that starts. */
  allRows(): LimiterRows[] {
    return [...this.#services.values()].map((placed) => placed.rows);
  }

  /** Open connections and flows of each tenant that has Services here. */
  *openCounts(): Iterable<{ readonly tenant: string; readonly connections: number }> {
    for (const [id, { tenant }] of this.#tenants) yield { tenant, connections: this.#registry.openCount(id) };
  }

  #placeService(entry: ServiceEntry, { before, entries, left }: PlaceServiceOptions): LimiterRows {
    const { id, uid } = entry;
    const tenant = entry.tenant ?? before?.tenant ?? null;
    const service = this.#registry.allocateRow(id);
    this.#registry.configure(service, serviceLimitsOf(entry.settings?.limits));
    if (tenant !== before?.tenant) {
      this.#countTenantService(tenant, 1);
      this.#releaseTenant(before, left);
    }
    const known = tenant === null ? undefined : entries.get(tenantId(tenant));
    const tenantRow = tenant === null ? UNLIMITED_ROW : this.#registry.allocateRow(tenantId(tenant));
    if (known?.kind === 'tenant') this.#limitTenant(known);
    const rows: LimiterRows = [uid, service, tenantRow];
    this.#services.set(id, { uid, tenant, rows });
    return rows;
  }

  #removeService(id: string, before: LimitedService, left: string[]): LimiterRows {
    this.#services.delete(id);
    left.push(id);
    this.#releaseTenant(before, left);
    return [before.uid, UNLIMITED_ROW, UNLIMITED_ROW];
  }

  #limitTenant({ id, limits }: TenantEntry): void {
    if (this.#tenants.has(id)) this.#registry.configure(this.#registry.allocateRow(id), tenantLimitsOf(limits));
  }

  #releaseTenant(before: LimitedService | undefined, left: string[]): void {
    if (before === undefined || before.tenant === null) return;
    this.#countTenantService(before.tenant, -1);
    left.push(tenantId(before.tenant));
  }

  #countTenantService(tenant: string | null, change: 1 | -1): void {
    if (tenant === null) return;
    const id = tenantId(tenant);
    const users = this.#tenants.get(id) ?? { tenant, services: 0 };
    users.services += change;
    if (users.services > 0) this.#tenants.set(id, users);
    else this.#tenants.delete(id);
  }

  /** What was left may have been taken again by the same changes. */
  #isUsed(owner: string): boolean {
    return this.#services.has(owner) || this.#tenants.has(owner);
  }
}

interface PlaceServiceOptions {
  readonly before: LimitedService | undefined;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly left: string[];
}

function tenantLimitsOf(limits: TenantLimits): LimiterConfig {
  const { connections, newConnectionsPerSecond, inBitsPerSecond, outBitsPerSecond } = limits;
  return {
    connections: connections ?? Infinity,
    newConnectionsPerSecond: newConnectionsPerSecond ?? Infinity,
    inBitsPerSecond: inBitsPerSecond ?? Infinity,
    outBitsPerSecond: outBitsPerSecond ?? Infinity,
  };
}

function serviceLimitsOf(limits: ServiceLimits | undefined): LimiterConfig {
  return {
    connections: limits?.connections ?? Infinity,
    newConnectionsPerSecond: Infinity,
    inBitsPerSecond: limits?.inBitsPerSecond ?? Infinity,
    outBitsPerSecond: limits?.outBitsPerSecond ?? Infinity,
  };
}
