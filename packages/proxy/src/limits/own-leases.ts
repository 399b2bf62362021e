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
export interface PlacedLease {
  readonly row: number;
  readonly window: DemandWindow;
  readonly lease: Lease;
}

/** The leases of this proxy: one for each limit of a tenant or Service. */
export class OwnLeases implements Iterable<PlacedLease> {
  /** The leases of removed limits, whose shares the store does not have back yet. */
  readonly toReturn: Map<string, LeaseName> = new Map();
  readonly #owners = new Map<string, LeasedOwner>();

  get owners(): Iterable<LeasedOwner> {
    return this.#owners.values();
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  *[Symbol.iterator](): Generator<PlacedLease> {
    for (const { owner, window, leases } of this.#owners.values())
      for (const lease of leases.values()) yield { row: owner.row, window, lease };
  }

  /** Creates and removes leases as limits were set and removed. */
  update(limited: Iterable<LimitedOwner>, create: (name: LeaseName, limit: number) => Lease): void {
    const gone = new Map(this.#owners);
    for (const owner of limited) {
      const key = ownerKey(owner.owner);
      gone.delete(key);
      const known = this.#owners.get(key) ?? { owner, window: new DemandWindow(), leases: new Map() };
      known.owner = owner;
      this.#owners.set(key, known);
      for (const resource of LEASED_RESOURCES) this.#updateLease(known, resource, create);
    }
    for (const [key, { leases }] of gone) {
      this.#owners.delete(key);
      for (const { name } of leases.values()) this.toReturn.set(leaseKey(name), name);
    }
  }

  /** Whether the limit of the lease still exists. */
  has(lease: Lease): boolean {
    const { owner, resource } = lease.name;
    return this.#owners.get(ownerKey(owner))?.leases.get(resource) === lease;
  }

  #updateLease(
    { owner, leases }: LeasedOwner,
    resource: LeasedResource,
    create: (name: LeaseName, limit: number) => Lease,
  ): void {
    const limit = owner.limits[resource];
    let lease = leases.get(resource);
    if (limit === Number.POSITIVE_INFINITY) {
      leases.delete(resource);
      if (lease !== undefined) this.toReturn.set(leaseKey(lease.name), lease.name);
      return;
    }
    if (lease === undefined) {
      lease = create({ owner: owner.owner, resource }, limit);
      leases.set(resource, lease);
      this.toReturn.delete(leaseKey(lease.name));
    }
    lease.limit = limit;
  }
}
