import { isRate, LEASED_RESOURCES, type LeasedResource, maxUnitsPerSecond } from '@weir/model/data-plane';
import { ClientCounts } from './client-counts.ts';
import { clearDescriptorCount, DescriptorCounter } from './descriptor-count.ts';
import { descriptorLimit, maxConnectionsFor } from './descriptor-limit.ts';
import { configureLimiter, type LimiterConfig, type MeanRates } from './limiter.ts';
import {
  createLimiterMemory,
  FIRST_FREE_ROW,
  IN_BYTES_COUNTER,
  type LimiterMemory,
  LimiterState,
  MAX_OPEN_FIELD,
  NEW_CONNECTIONS,
  OUT_BYTES_COUNTER,
  PROXY_ROW,
  REFUSED_OPEN_COUNTER,
  REQUESTS,
  type WorkerLimiterMemory,
} from './limiter-state.ts';
import { unitsInSecond } from './second-window.ts';

/** How much the clients of an owner ask for and use on this proxy. Each number is the sum over all workers. */
export interface RowDemand {
  /** The open connections and flows. */
  readonly open: number;
  /** The new connections and the requests that were admitted in the last second. 0 if their rate is not limited. */
  readonly admittedNew: number;
  readonly admittedRequests: number;
  /** How many readers wait because the bandwidth of what clients send (`In`) or receive (`Out`) is used up. */
  readonly waitingIn: number;
  readonly waitingOut: number;
  /**
   * Totals that only increase until the owner's row is released: connections that the limit `connections` refused, and
   * connections, requests and bytes that were offered while their rates were limited.
   */
  readonly refusedOpen: number;
  readonly offeredNew: number;
  readonly offeredRequests: number;
  readonly inBytes: number;
  readonly outBytes: number;
}

const NO_LIMITS: LimiterConfig = {
  connections: Infinity,
  newConnectionsPerSecond: Infinity,
  inBitsPerSecond: Infinity,
  outBitsPerSecond: Infinity,
  requestsPerSecond: Infinity,
};

/** How much of a limit this proxy may use. */
export interface LimitShare {
  /**
   * In the unit of the limit. For a rate, the maximum number of units in any second. Infinity if this proxy may use the
   * whole limit.
   */
  readonly share: number;
  /** The mean rate, if the limit is a rate. By default the limit itself. */
  readonly meanRate?: number;
}

interface RowLimits {
  limits: LimiterConfig;
  shares: Partial<Record<LeasedResource, LimitShare>>;
}

/** The cells of a row's two `SecondWindow`s, in shared memory. */
interface RateWindows {
  readonly newConnections: Int32Array;
  readonly requests: Int32Array;
}

interface AllocatedRow {
  readonly row: number;
  /** Workers that have reached this mark count no new connection in the row. Undefined while the row is in use. */
  releasedAtMark: number | undefined;
}

/**
 * Assigns rows of the limiter state to tenants and Services, and slots to workers. A released row is reused when no
 * worker uses the row any more, and no open connection and no unit of the last second is counted in the row.
 */
export class LimiterRegistry {
  /** Counts the open descriptors of this process. */
  readonly descriptors: DescriptorCounter;
  readonly #memory: LimiterMemory;
  readonly #state: LimiterState;
  readonly #slotByWorker = new Map<number, number>();
  readonly #rowByOwner = new Map<string, AllocatedRow>();
  readonly #releasedOwners = new Set<string>();
  readonly #freeRows: number[] = [];
  readonly #limitsByRow = new Map<number, RowLimits>();
  /** Keeps the views, because creating a view of shared memory is expensive. */
  readonly #rateWindowsByRow = new Map<number, RateWindows>();
  #nextRow = FIRST_FREE_ROW;
  #appliedMark = 0;

  /**
   * At most `workerSlots` workers run at a time. All tenants together may have `maxConnections` connections and flows
   * open.
   */
  constructor(workerSlots: number, maxConnections: number = maxConnectionsFor(descriptorLimit())) {
    this.#memory = createLimiterMemory(workerSlots);
    this.descriptors = new DescriptorCounter(this.#memory.descriptorCounts);
    this.#state = new LimiterState(this.#memory.state);
    this.#state.setLimit(PROXY_ROW, MAX_OPEN_FIELD, maxConnections);
  }

  /** Assigns a free slot to a worker that starts. Throws if no slot is free. */
  addWorker(worker: number): WorkerLimiterMemory {
    const { workerSlots } = this.#state;
    const taken = new Set(this.#slotByWorker.values());
    const workerSlot = Array.from({ length: workerSlots }, (_, slot) => slot).find((slot) => !taken.has(slot));
    if (workerSlot === undefined) throw new Error(`all ${workerSlots} worker slots are taken`);
    this.#slotByWorker.set(worker, workerSlot);
    return { memory: this.#memory, workerSlot };
  }

  /** Frees the slot of a worker that has ended. Clears the worker's counts, because its connections ended with it. */
  removeWorker(worker: number): void {
    const workerSlot = this.#slotByWorker.get(worker);
    if (workerSlot === undefined) return;
    this.#slotByWorker.delete(worker);
    this.#state.clearWorker(workerSlot);
    ClientCounts.clearWorker(this.#memory.clientCounts, workerSlot);
    clearDescriptorCount(this.#memory.descriptorCounts, workerSlot);
  }

  /**
   * Returns the row of an owner. Allocates a row first if the owner has none. `owner` is the entry id of a tenant or
   * Service. The owner keeps the row until `release`.
   */
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
    this.#limitsByRow.delete(row);
    this.#rowByOwner.set(owner, { row, releasedAtMark: undefined });
    return row;
  }

  /** Sets the limits of a row. Keeps the row's shares, except the share of a limit that is removed. */
  configure(row: number, limits: LimiterConfig): void {
    const shares = { ...this.#limitsByRow.get(row)?.shares };
    for (const resource of LEASED_RESOURCES) if (limits[resource] === Infinity) delete shares[resource];
    this.#write(row, { limits, shares });
  }

  /**
   * Limits this proxy to a share of a limit. Does nothing if the row does not have this limit.
   */
  setShare(row: number, resource: LeasedResource, share: LimitShare): void {
    const known = this.#limitsByRow.get(row);
    if (known === undefined || known.limits[resource] === Infinity) return;
    const before = known.shares[resource];
    if (before?.share === share.share && before.meanRate === share.meanRate) return;
    this.#write(row, { limits: known.limits, shares: { ...known.shares, [resource]: share } });
  }

  /** Returns the fleet-wide limits of a row. This proxy may use only its shares of them. */
  limits(row: number): LimiterConfig {
    return this.#limitsByRow.get(row)?.limits ?? NO_LIMITS;
  }

  demand(row: number): RowDemand {
    const state = this.#state;
    const now = process.hrtime.bigint();
    const { newConnections, requests } = this.#rateWindows(row);
    return {
      open: state.openCount(row),
      admittedNew: unitsInSecond(newConnections, now),
      admittedRequests: unitsInSecond(requests, now),
      waitingIn: state.waitingReaders(row, 'in'),
      waitingOut: state.waitingReaders(row, 'out'),
      refusedOpen: state.counter(row, REFUSED_OPEN_COUNTER),
      offeredNew: state.counter(row, NEW_CONNECTIONS),
      offeredRequests: state.counter(row, REQUESTS),
      inBytes: state.counter(row, IN_BYTES_COUNTER),
      outBytes: state.counter(row, OUT_BYTES_COUNTER),
    };
  }

  /** Releases the row of an owner. Workers that have reached `mark` count no new connection in the row. */
  release(owner: string, mark: number): void {
    const allocated = this.#rowByOwner.get(owner);
    if (allocated === undefined || allocated.releasedAtMark !== undefined) return;
    allocated.releasedAtMark = mark;
    this.#releasedOwners.add(owner);
  }

  /** To be called when all workers have reached `mark`. */
  setAppliedMark(mark: number): void {
    this.#appliedMark = mark;
  }

  /** Returns the number of open connections and flows of an owner. */
  openCount(owner: string): number {
    const allocated = this.#rowByOwner.get(owner);
    return allocated === undefined ? 0 : this.#state.openCount(allocated.row);
  }

  #rateWindows(row: number): RateWindows {
    let windows = this.#rateWindowsByRow.get(row);
    if (windows === undefined) {
      windows = {
        newConnections: this.#state.windowCells(row, NEW_CONNECTIONS),
        requests: this.#state.windowCells(row, REQUESTS),
      };
      this.#rateWindowsByRow.set(row, windows);
    }
    return windows;
  }

  #write(row: number, rowLimits: RowLimits): void {
    this.#limitsByRow.set(row, rowLimits);
    const { limits, shares } = rowLimits;
    const limitOf = (resource: LeasedResource): number => {
      const limit = isRate(resource) ? maxUnitsPerSecond(limits[resource], 1) : limits[resource];
      return Math.min(limit, shares[resource]?.share ?? Infinity);
    };
    const meanOf = (resource: keyof MeanRates): number =>
      Math.min(limits[resource], shares[resource]?.meanRate ?? Infinity);
    const shared: LimiterConfig = {
      connections: limitOf('connections'),
      newConnectionsPerSecond: limitOf('newConnectionsPerSecond'),
      inBitsPerSecond: limitOf('inBitsPerSecond'),
      outBitsPerSecond: limitOf('outBitsPerSecond'),
      requestsPerSecond: limitOf('requestsPerSecond'),
    };
    const means: MeanRates = {
      newConnectionsPerSecond: meanOf('newConnectionsPerSecond'),
      requestsPerSecond: meanOf('requestsPerSecond'),
    };
    configureLimiter(this.#state, row, { limits: shared, means, now: process.hrtime.bigint() });
  }

  /**
   * Reports whether nothing counts in the owner's row any more: the row was released, all workers know this, and the row has no open
   * connection and no unit of the last second. Also returns true if the owner has no row.
   */
  isUnused(owner: string): boolean {
    const allocated = this.#rowByOwner.get(owner);
    if (allocated === undefined) return true;
    const { row, releasedAtMark } = allocated;
    if (releasedAtMark === undefined || releasedAtMark > this.#appliedMark) return false;
    const { open, admittedNew, admittedRequests } = this.demand(row);
    return open + admittedNew + admittedRequests === 0;
  }

  #reclaim(): void {
    for (const owner of this.#releasedOwners) {
      const allocated = this.#rowByOwner.get(owner);
      if (allocated === undefined || !this.isUnused(owner)) continue;
      this.#releasedOwners.delete(owner);
      this.#rowByOwner.delete(owner);
      this.#freeRows.push(allocated.row);
    }
  }
}
