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
import type { BudgetLimits } from './budget.ts';
import type { LimitBook } from './limit-book.ts';
import { UNLIMITED_ROW } from './limit-sheet.ts';
import type { BudgetRows } from './worker-limits.ts';

interface Placed {
  readonly uid: string;
  /** While its tenant is in dispute a Service that still serves draws on the one who had it; null: never known. */
  readonly tenant: string | null;
  readonly rows: BudgetRows;
}

export class LimitRoom {
  readonly #book: LimitBook;
  /** By entry id. */
  readonly #services = new Map<string, Placed>();
  /** How many Services draw on each tenant, by its entry's id. */
  readonly #users = new Map<string, { readonly tenant: string; services: number }>();

  constructor(book: LimitBook) {
    this.#book = book;
  }

  /** `entries` with the changes made. `rows` are for the workers; `left` is for `release`, when they were told. */
  take(changes: readonly Change[], entries: ReadonlyMap<string, Entry>): { rows: BudgetRows[]; left: string[] } {
    const rows: BudgetRows[] = [];
    const left: string[] = [];
    for (const change of changes) {
      // Most of a large table are endpoints and listeners, which nothing here goes by.
      if (change.kind === 'put' && change.entry.kind !== 'service' && change.entry.kind !== 'tenant') continue;
      const id = change.kind === 'put' ? change.entry.id : change.id;
      const entry = entries.get(id);
      if (entry?.kind === 'tenant') this.#limitTenant(entry);
      const before = this.#services.get(id);
      if (entry?.kind === 'service') rows.push(this.#place(entry, { before, entries, left }));
      else if (before !== undefined) rows.push(this.#remove(id, before, left));
    }
    return { rows, left: left.filter((owner) => !this.#isUsed(owner)) };
  }

  release(left: readonly string[], mark: number): void {
    for (const owner of left) this.#book.release(owner, mark);
  }

  /** All at once, for a worker that starts. */
  rows(): BudgetRows[] {
    return [...this.#services.values()].map((placed) => placed.rows);
  }

  /** Open connections and flows of each tenant that has Services here. */
  *used(): Iterable<{ readonly tenant: string; readonly connections: number }> {
    for (const [id, { tenant }] of this.#users) yield { tenant, connections: this.#book.open(id) };
  }

  #place(entry: ServiceEntry, { before, entries, left }: Placing): BudgetRows {
    const { id, uid } = entry;
    const tenant = entry.tenant ?? before?.tenant ?? null;
    const service = this.#book.row(id);
    this.#book.limit(service, serviceBudget(entry.settings?.limits));
    if (tenant !== before?.tenant) {
      this.#use(tenant, 1);
      this.#leave(before, left);
    }
    const known = tenant === null ? undefined : entries.get(tenantId(tenant));
    const tenantRow = tenant === null ? UNLIMITED_ROW : this.#book.row(tenantId(tenant));
    if (known?.kind === 'tenant') this.#limitTenant(known);
    const rows: BudgetRows = [uid, service, tenantRow];
    this.#services.set(id, { uid, tenant, rows });
    return rows;
  }

  #remove(id: string, before: Placed, left: string[]): BudgetRows {
    this.#services.delete(id);
    left.push(id);
    this.#leave(before, left);
    return [before.uid, UNLIMITED_ROW, UNLIMITED_ROW];
  }

  #limitTenant({ id, limits }: TenantEntry): void {
    if (this.#users.has(id)) this.#book.limit(this.#book.row(id), tenantBudget(limits));
  }

  #leave(before: Placed | undefined, left: string[]): void {
    if (before === undefined || before.tenant === null) return;
    this.#use(before.tenant, -1);
    left.push(tenantId(before.tenant));
  }

  #use(tenant: string | null, change: 1 | -1): void {
    if (tenant === null) return;
    const id = tenantId(tenant);
    const users = this.#users.get(id) ?? { tenant, services: 0 };
    users.services += change;
    if (users.services > 0) this.#users.set(id, users);
    else this.#users.delete(id);
  }

  /** What was left may have been taken again by the same changes. */
  #isUsed(owner: string): boolean {
    return this.#services.has(owner) || this.#users.has(owner);
  }
}

interface Placing {
  readonly before: Placed | undefined;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly left: string[];
}

function tenantBudget(limits: TenantLimits): BudgetLimits {
  const { connections, newConnectionsPerSecond, inBitsPerSecond, outBitsPerSecond } = limits;
  return {
    connections: connections ?? Infinity,
    newConnectionsPerSecond: newConnectionsPerSecond ?? Infinity,
    inBitsPerSecond: inBitsPerSecond ?? Infinity,
    outBitsPerSecond: outBitsPerSecond ?? Infinity,
  };
}

function serviceBudget(limits: ServiceLimits | undefined): BudgetLimits {
  return {
    connections: limits?.connections ?? Infinity,
    newConnectionsPerSecond: Infinity,
    inBitsPerSecond: limits?.inBitsPerSecond ?? Infinity,
    outBitsPerSecond: limits?.outBitsPerSecond ?? Infinity,
  };
}
