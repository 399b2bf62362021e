import {
  type Change,
  type Entry,
  type ServiceEntry,
  type ServiceLimits,
  type TenantEntry,
  type TenantLimits,
  tenantId,
} from '@weir/model/data-plane';
import type { LimiterRows } from './admission.ts';
import { ClientCounts } from './client-counts.ts';
import { descriptorLimit, maxConnectionsFor } from './descriptor-limit.ts';
import { configureLimiter, type LimiterConfig } from './limiter.ts';
import {
  createLimiterMemory,
  FIRST_FREE_ROW,
  type LimiterMemory,
  LimiterState,
  MAX_OPEN_FIELD,
  PROXY_ROW,
  UNLIMITED_ROW,
  type WorkerLimiterMemory,
} from './limiter-state.ts';

// The rows of limits as the main thread keeps them: who has which, and which may be given to somebody else.
interface AllocatedRow {
  readonly row: number;
  /** The mark after which no worker counts anything new here; undefined: in use. */
  releasedAtMark: number | undefined;
}

export class LimiterRegistry {
  readonly #memory: LimiterMemory;
  readonly #state: LimiterState;
  readonly #slotByWorker = new Map<number, number>();
  readonly #rowByOwner = new Map<string, AllocatedRow>();
  readonly #releasedOwners = new Set<string>();
  readonly #freeRows: number[] = [];
  #nextRow = FIRST_FREE_ROW;
  #appliedMark = 0;

  /** At most so many workers live at a time; `places` are there for connections and flows of all tenants. */
  constructor(workers: number, places: number = maxConnectionsFor(descriptorLimit())) {
    this.#memory = createLimiterMemory(workers);
    this.#state = new LimiterState(this.#memory.state);
    this.#state.setLimit(PROXY_ROW, MAX_OPEN_FIELD, places);
  }

  /** The place of a worker that starts; `unseat` when it has ended. */
  addWorker(worker: number): WorkerLimiterMemory {
    const taken = new Set(this.#slotByWorker.values());
    const columns = Array.from({ length: this.#state.workerSlots }, (_, column) => column);
    const workerSlot = columns.find((each) => !taken.has(each));
    if (workerSlot === undefined) throw new Error(`there are only ${columns.length} places for workers`);
    this.#slotByWorker.set(worker, workerSlot);
    return { memory: this.#memory, workerSlot };
  }

  /** Its connections are gone with it, and so is what it had of any limit. */
  removeWorker(worker: number): void {
    const column = this.#slotByWorker.get(worker);
    if (column === undefined) return;
    this.#slotByWorker.delete(worker);
    this.#state.clearWorker(column);
    ClientCounts.clearWorker(this.#memory.clientCounts, column);
  }

  /** The row of `owner`, which stays until `release`. */
  allocateRow(owner: string): number {
    const known = this.#rowByOwner.get(owner);
    if (known !== undefined) {
      known.releasedAtMark = undefined;
      this.#releasedOwners.delete(owner);
      return known.row;
    }
    if (this.#freeRows.length === 0) this.#reclaim();
    const row = this.#freeRows.pop() ?? this.#nextRow++;
    this.#state.ensureRow(row);
    this.#state.clearRow(row);
    this.#rowByOwner.set(owner, { row, releasedAtMark: undefined });
    return row;
  }

  configure(row: number, limits: LimiterConfig): void {
    configureLimiter(this.#state, row, { limits, now: process.hrtime.bigint() });
  }

  /** From `mark` on nothing new of it is counted. */
  release(owner: string, mark: number): void {
    const held = this.#rowByOwner.get(owner);
    if (held === undefined || held.releasedAtMark !== undefined) return;
    held.releasedAtMark = mark;
    this.#releasedOwners.add(owner);
  }

  /** The mark that all workers have reached. */
  setAppliedMark(mark: number): void {
    this.#appliedMark = mark;
  }

  /** Open connections and flows. */
  openCount(owner: string): number {
    const held = this.#rowByOwner.get(owner);
    return held === undefined ? 0 : this.#state.openCount(held.row);
  }

  #reclaim(): void {
    for (const owner of this.#releasedOwners) {
      const held = this.#rowByOwner.get(owner);
      if (
        held?.releasedAtMark === undefined ||
        held.releasedAtMark > this.#appliedMark ||
        this.#state.openCount(held.row) > 0
      )
        continue;
      this.#releasedOwners.delete(owner);
      this.#rowByOwner.delete(owner);
      this.#freeRows.push(held.row);
    }
  }
}

// What the routing table says of limits, brought to the shared sheet and to the workers. On this proxy a limit of a tenant
// applies as it stands; a share of it, leased from the fleet, would be written in `#limitTenant`.
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
