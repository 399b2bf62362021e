import {
  type Change,
  type Entry,
  type ServiceEntry,
  type ServiceLimits,
  type TenantEntry,
  type TenantLimits,
  tenantId,
} from '@weir/model/data-plane';
import type { LeaseOwner } from '@weir/store';
import type { LimiterRows } from './admission.ts';
import type { LimiterConfig } from './limiter.ts';
import type { LimiterRegistry } from './limiter-registry.ts';
import { UNLIMITED_ROW } from './limiter-state.ts';

interface LimitedService {
  readonly uid: string;
  /**
   * The tenant whose limits apply. While two policies claim the Service's namespace, this is the previous tenant. Null
   * if the Service never had a known tenant.
   */
  readonly tenant: string | null;
  readonly rows: LimiterRows;
}

/** A tenant or Service that has limits, and the row that limits its connections on this proxy. */
export interface LimitedOwner {
  readonly owner: LeaseOwner;
  readonly row: number;
  /** The limits of the whole fleet, of which this proxy has shares (`LimiterRegistry.setShare`). */
  readonly limits: LimiterConfig;
  /** Whether the owner is not in the routing table of this proxy any more, but its connections still count. */
  readonly isLeaving: boolean;
}

/** Applies the limits of the routing table to the limiter state. */
export class TableLimits {
  readonly #registry: LimiterRegistry;
  readonly #servicesByEntryId = new Map<string, LimitedService>();
  /** The tenants that have Services on this proxy, and the number of these Services. */
  readonly #tenantsByEntryId = new Map<string, { readonly tenant: string; services: number }>();

  /** The owners that were removed from the table, by entry id. The connections of some of them still count. */
  readonly #removed = new Map<string, { readonly owner: LeaseOwner; readonly row: number }>();

  constructor(registry: LimiterRegistry) {
    this.#registry = registry;
  }

  /**
   * Applies changes of the table. `entries` is the table after the changes. Returns the rows to send to the workers, the
   * owners whose rows may be released after the new rows were sent, and whether limits may have changed.
   */
  apply(
    changes: readonly Change[],
    entries: ReadonlyMap<string, Entry>,
  ): { rows: LimiterRows[]; releasedOwners: string[]; mayChangeLimits: boolean } {
    const rows: LimiterRows[] = [];
    const released: string[] = [];
    let hasTenantChanges = false;
    for (const change of changes) {
      // Skips entries without limits, such as endpoints and listeners, because most entries of a large table are
      // endpoints or listeners.
      if (change.kind === 'put' && change.entry.kind !== 'service' && change.entry.kind !== 'tenant') continue;
      const id = change.kind === 'put' ? change.entry.id : change.id;
      const entry = entries.get(id);
      if (entry?.kind === 'tenant') {
        this.#limitTenant(entry);
        hasTenantChanges = true;
      }
      const before = this.#servicesByEntryId.get(id);
      if (entry?.kind === 'service') rows.push(this.#placeService(entry, { before, entries, released }));
      else if (before !== undefined) rows.push(this.#removeService(id, before, released));
    }
    const releasedOwners = released.filter((owner) => !this.#isUsed(owner));
    return { rows, releasedOwners, mayChangeLimits: hasTenantChanges || rows.length > 0 };
  }

  /**
   * Releases the rows of owners that `apply` returned. Workers that have reached `mark` have applied the rows that the
   * same call of `apply` returned.
   */
  release(owners: readonly string[], mark: number): void {
    for (const owner of owners) this.#registry.release(owner, mark);
  }

  /** Returns the rows of all Services, for a worker that starts. */
  allRows(): LimiterRows[] {
    return [...this.#servicesByEntryId.values()].map((service) => service.rows);
  }

  /** Yields the number of open connections and flows of each tenant that has Services on this proxy. */
  *openCounts(): Iterable<{ readonly tenant: string; readonly connections: number }> {
    for (const [id, { tenant }] of this.#tenantsByEntryId) yield { tenant, connections: this.#registry.openCount(id) };
  }

  /**
   * Yields the owners on this proxy that have at least one limit. An owner that was removed from the table is yielded until its last
   * connection has ended and its last units no longer count for the second.
   */
  *leased(): Iterable<LimitedOwner> {
    for (const [id, { tenant }] of this.#tenantsByEntryId) {
      const row = this.#registry.allocateRow(id);
      const limits = this.#registry.limits(row);
      if (hasLimit(limits)) yield { owner: { kind: 'tenant', name: tenant }, row, limits, isLeaving: false };
    }
    for (const { uid, rows } of this.#servicesByEntryId.values()) {
      const [, row] = rows;
      const limits = this.#registry.limits(row);
      if (hasLimit(limits)) yield { owner: { kind: 'service', uid }, row, limits, isLeaving: false };
    }
    for (const [id, { owner, row }] of this.#removed) {
      const limits = this.#registry.limits(row);
      if (this.#registry.isUnused(id)) this.#removed.delete(id);
      else if (hasLimit(limits)) yield { owner, row, limits, isLeaving: true };
    }
  }

  #placeService(entry: ServiceEntry, { before, entries, released }: PlaceServiceOptions): LimiterRows {
    const { id, uid } = entry;
    const tenant = entry.tenant ?? before?.tenant ?? null;
    const service = this.#registry.allocateRow(id);
    this.#removed.delete(id);
    this.#registry.configure(service, serviceLimitsOf(entry.settings?.limits));
    if (tenant !== before?.tenant) {
      this.#countTenantService(tenant, 1);
      this.#releaseTenant(before, released);
    }
    const tenantEntry = tenant === null ? undefined : entries.get(tenantId(tenant));
    const tenantRow = tenant === null ? UNLIMITED_ROW : this.#registry.allocateRow(tenantId(tenant));
    if (tenantEntry?.kind === 'tenant') this.#limitTenant(tenantEntry);
    const rows: LimiterRows = [uid, service, tenantRow];
    this.#servicesByEntryId.set(id, { uid, tenant, rows });
    return rows;
  }

  #removeService(id: string, before: LimitedService, released: string[]): LimiterRows {
    this.#servicesByEntryId.delete(id);
    this.#removed.set(id, { owner: { kind: 'service', uid: before.uid }, row: before.rows[1] });
    released.push(id);
    this.#releaseTenant(before, released);
    return [before.uid, UNLIMITED_ROW, UNLIMITED_ROW];
  }

  #limitTenant({ id, limits }: TenantEntry): void {
    if (this.#tenantsByEntryId.has(id))
      this.#registry.configure(this.#registry.allocateRow(id), tenantLimitsOf(limits));
  }

  #releaseTenant(before: LimitedService | undefined, released: string[]): void {
    if (before === undefined || before.tenant === null) return;
    this.#countTenantService(before.tenant, -1);
    released.push(tenantId(before.tenant));
  }

  #countTenantService(tenant: string | null, change: 1 | -1): void {
    if (tenant === null) return;
    const id = tenantId(tenant);
    const counted = this.#tenantsByEntryId.get(id) ?? { tenant, services: 0 };
    counted.services += change;
    if (counted.services > 0) {
      this.#tenantsByEntryId.set(id, counted);
      this.#removed.delete(id);
    } else {
      this.#tenantsByEntryId.delete(id);
      this.#removed.set(id, { owner: { kind: 'tenant', name: tenant }, row: this.#registry.allocateRow(id) });
    }
  }

  /**
   * Reports whether an owner still uses its row, for example because a later change in the list added the owner again.
   */
  #isUsed(owner: string): boolean {
    return this.#servicesByEntryId.has(owner) || this.#tenantsByEntryId.has(owner);
  }
}

interface PlaceServiceOptions {
  readonly before: LimitedService | undefined;
  readonly entries: ReadonlyMap<string, Entry>;
  /** Collects the owners that no longer need their rows. */
  readonly released: string[];
}

function hasLimit(limits: LimiterConfig): boolean {
  return Object.values(limits).some((limit) => limit !== Infinity);
}

function tenantLimitsOf(limits: TenantLimits): LimiterConfig {
  const { connections, newConnectionsPerSecond, inBitsPerSecond, outBitsPerSecond, requestsPerSecond } = limits;
  return {
    connections: connections ?? Infinity,
    newConnectionsPerSecond: newConnectionsPerSecond ?? Infinity,
    inBitsPerSecond: inBitsPerSecond ?? Infinity,
    outBitsPerSecond: outBitsPerSecond ?? Infinity,
    requestsPerSecond: requestsPerSecond ?? Infinity,
  };
}

function serviceLimitsOf(limits: ServiceLimits | undefined): LimiterConfig {
  return {
    connections: limits?.connections ?? Infinity,
    newConnectionsPerSecond: limits?.newConnectionsPerSecond ?? Infinity,
    inBitsPerSecond: limits?.inBitsPerSecond ?? Infinity,
    outBitsPerSecond: limits?.outBitsPerSecond ?? Infinity,
    requestsPerSecond: limits?.requestsPerSecond ?? Infinity,
  };
}
