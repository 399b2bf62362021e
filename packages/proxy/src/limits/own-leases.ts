import { LEASED_RESOURCES, type LeasedResource } from '@weir/model/data-plane';
import type { LeaseName } from '@weir/store';
import { type Lease, leaseKey, ownerKey } from './lease.ts';
import { DemandWindow } from './lease-demand.ts';
import type { LimitedOwner } from './table-limits.ts';

/** A tenant or Service with its leases. */
export interface LeasedOwner {
  owner: LimitedOwner;
  readonly window: DemandWindow;
  readonly leases: Map<LeasedResource, Lease>;
}

/** A lease with the row of its owner. */
export interface LeaseOfRow {
  readonly row: number;
  readonly window: DemandWindow;
  readonly lease: Lease;
}

/** The leases of this proxy: one for each limit of a tenant or Service. */
export class OwnLeases implements Iterable<LeaseOfRow> {
  /** The leases of removed limits, whose shares the store does not have back yet. */
  readonly toReturn: Map<string, LeaseName> = new Map();
  readonly #owners = new Map<string, LeasedOwner>();

  get owners(): Iterable<LeasedOwner> {
    return this.#owners.values();
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  *[Symbol.iterator](): Generator<LeaseOfRow> {
    for (const { owner, window, leases } of this.#owners.values())
      for (const lease of leases.values()) yield { row: owner.row, window, lease };
  }

  makeAllDue(): void {
    for (const { lease } of this) lease.makeDue();
  }

  /** Returns how many leases are due at `now`, in milliseconds of the monotonic clock. */
  dueAt(now: number): number {
    return [...this].filter(({ lease }) => lease.isDue(now)).length;
  }

  /** Creates and removes leases as limits were set and removed. Returns whether a limit or an owner has changed. */
  update(limited: Iterable<LimitedOwner>, create: (name: LeaseName, limit: number) => Lease): boolean {
    const gone = new Map(this.#owners);
    let hasChanged = false;
    for (const owner of limited) {
      const key = ownerKey(owner.owner);
      gone.delete(key);
      const before = this.#owners.get(key);
      // If the owner has moved to another row, its leases begin anew: the samples of the window are of the former row, and an exchange
      // that is not answered yet must not set the share of the new row.
      const isSame = before !== undefined && before.owner.row === owner.row;
      const known = isSame ? before : { owner, window: new DemandWindow(), leases: new Map() };
      hasChanged ||= known.owner.isLeaving !== owner.isLeaving;
      known.owner = owner;
      this.#owners.set(key, known);
      for (const resource of LEASED_RESOURCES) if (this.#updateLease(known, resource, create)) hasChanged = true;
    }
    for (const [key, { leases }] of gone) {
      this.#owners.delete(key);
      for (const { name } of leases.values()) this.toReturn.set(leaseKey(name), name);
    }
    return hasChanged || gone.size > 0;
  }

  /**
   * Returns `due`, and each lease that has waited for half of its interval, if that interval is at most the longest interval in `due`.
   * Otherwise limits that were set at different times would be exchanged in calls of their own for ever.
   */
  withLeasesDueSoon(due: readonly LeaseOfRow[], now: number): readonly LeaseOfRow[] {
    if (due.length === 0) return due;
    const longestMs = due.reduce((longest, { lease }) => Math.max(longest, lease.intervalMs), 0);
    const dueLeases = new Set(due.map(({ lease }) => lease));
    const halfDue = [...this].filter(
      ({ lease }) => lease.intervalMs <= longestMs && lease.isHalfDue(now) && !dueLeases.has(lease),
    );
    return [...due, ...halfDue];
  }

  /** Whether the limit of the lease still exists. */
  has(lease: Lease): boolean {
    const { owner, resource } = lease.name;
    return this.#owners.get(ownerKey(owner))?.leases.get(resource) === lease;
  }

  /** Returns whether the limit has changed. */
  #updateLease(
    { owner, leases }: LeasedOwner,
    resource: LeasedResource,
    create: (name: LeaseName, limit: number) => Lease,
  ): boolean {
    const limit = owner.limits[resource];
    let lease = leases.get(resource);
    if (limit === Number.POSITIVE_INFINITY) {
      leases.delete(resource);
      if (lease !== undefined) this.toReturn.set(leaseKey(lease.name), lease.name);
      return lease !== undefined;
    }
    const hasChanged = lease?.limit !== limit;
    if (lease === undefined) {
      lease = create({ owner: owner.owner, resource }, limit);
      leases.set(resource, lease);
      this.toReturn.delete(leaseKey(lease.name));
    }
    lease.limit = limit;
    return hasChanged;
  }
}
