import {
  exchangeIntervalMs,
  hasDemandChanged,
  isolatedMeanRate,
  isRate,
  maxUnitsPerSecond,
  meanRate,
  type ShareClaim,
  type ShareQuestion,
  ungrantedShare,
  wantedShare,
} from '@weir/model/data-plane';
import type { LeaseGrant, LeaseName, LeaseRequest } from '@weir/store';
import type { ResourceDemand } from './lease-demand.ts';
import type { LimitShare } from './limiter-registry.ts';

interface RequestOptions {
  /** In milliseconds of the monotonic clock. */
  readonly now: number;
  readonly mayLower: boolean;
  /** Limits the clients to the lease's present `limitShare`, and returns how much of the limit the clients use. */
  readonly applyShare: () => number;
}

/** The share that this proxy has of one limit. Decides when to ask the store for another share, and for how much. */
export class Lease {
  readonly name: LeaseName;
  /** Whether this proxy cannot learn what the other proxies admit, because it does not reach the store. */
  isIsolated = false;
  #limit: number;
  #share = 0;
  #others: Pick<ShareQuestion, 'others' | 'rank'> = { others: [], rank: 0 };
  #claim: ShareClaim = { demand: 0, weight: 1, floor: 0, used: 0 };
  /** The arguments of the last `update`. Undefined if the limit, the claims of other members or a call of `request` have changed since. */
  #lastUpdate: { readonly demand: ResourceDemand; readonly isDraining: boolean } | undefined;
  /** The demand of the last exchange, which the other members know. */
  #reportedDemand = 0;
  #wanted: number;
  #used = 0;
  #hasGrant = false;
  /** Whether `useUngrantedShare` has set a share that no request has reported. */
  #hasUnreportedShare = false;
  #lastHeld = 0;
  #exchangedAt = Number.NEGATIVE_INFINITY;
  #intervalMs = 0;

  constructor(name: LeaseName, limit: number) {
    this.name = name;
    this.#limit = limit;
    this.#wanted = this.#leasedUnits;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#lastUpdate = undefined;
  }

  /** What this proxy may use of the limit. */
  get limitShare(): LimitShare {
    if (!isRate(this.name.resource)) return { share: this.#share };
    const { limit } = this;
    const { others } = this.#others;
    const mean = this.isIsolated
      ? isolatedMeanRate(this.#share, { limit, members: others.length + 1 })
      : meanRate({ limit, others });
    return { share: this.#share, meanRate: mean };
  }

  /** The units that all proxies divide: the limit, or for a rate, the units that all may admit together in a second. */
  get #leasedUnits(): number {
    const members = this.#others.others.length + 1;
    return isRate(this.name.resource) ? maxUnitsPerSecond(this.limit, members) : this.limit;
  }

  /** Whether the store has granted at least one unit, or has answered and no share is wanted. */
  get hasGrantedShare(): boolean {
    return this.#hasGrant && this.#share >= Math.min(1, this.#wanted);
  }

  /**
   * Sets a share without a grant: `savedShare`, the share that an earlier incarnation had, or otherwise a tenth of the limit. Does nothing
   * and returns false if this proxy has a share or wants none. With a share of 0, this proxy would refuse all clients.
   */
  useUngrantedShare(savedShare: number | undefined): boolean {
    if (this.#share > 0 || this.#wanted === 0) return false;
    this.#share = Math.min(this.#leasedUnits, savedShare || ungrantedShare(this.limit));
    this.#hasUnreportedShare = true;
    return true;
  }

  /**
   * Sets what the clients need now. A draining proxy keeps no share for future clients. Does nothing if `demand` is the same
   * object as in the last call, and `isDraining`, the limit and the other members are unchanged and no request was made since.
   */
  update(demand: ResourceDemand, isDraining: boolean): void {
    if (demand === this.#lastUpdate?.demand && isDraining === this.#lastUpdate.isDraining) return;
    this.#lastUpdate = { demand, isDraining };
    const { claim, used } = demand;
    this.#claim = claim;
    this.#used = used;
    const fair = wantedShare({ limit: this.#leasedUnits, own: claim, ...this.#others });
    this.#wanted = isDraining ? Math.min(fair, Math.max(1, claim.demand, claim.floor)) : fair;
  }

  /** Reports whether the lease should be exchanged at `now`, in milliseconds of the monotonic clock. */
  isDue(now: number): boolean {
    const limit = this.#leasedUnits;
    this.#intervalMs = exchangeIntervalMs({
      limit,
      claims: [this.#claim, ...this.#others.others],
      share: this.#share,
      wanted: this.#wanted,
      held: this.#lastHeld,
      hasDemandChanged: isRate(this.name.resource) && hasDemandChanged(this.#claim.demand, this.#reportedDemand, limit),
    });
    return now - this.#exchangedAt >= this.#intervalMs;
  }

  /** The time between two exchanges, as of the last call of `isDue`. */
  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** Reports whether half of the interval has passed at `now`. */
  isHalfDue(now: number): boolean {
    return now - this.#exchangedAt >= this.#intervalMs / 2;
  }

  /** Makes the next call of `isDue` return true. */
  makeDue(): void {
    this.#exchangedAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * Returns the request for the store. If the request asks for a lower share, lowers the share first and calls
   * `applyShare`, which must limit the clients to `limitShare` before it returns what they use. If `mayLower` is false,
   * keeps the share.
   */
  request({ now, mayLower, applyShare }: RequestOptions): LeaseRequest {
    this.#lastUpdate = undefined;
    this.#exchangedAt = now;
    this.#reportedDemand = this.#claim.demand;
    this.#hasUnreportedShare = false;
    if (!mayLower) this.#wanted = Math.max(this.#wanted, this.#share);
    if (this.#wanted < this.#share) {
      this.#share = this.#wanted;
      this.#used = applyShare();
    }
    this.#lastHeld = Math.max(this.#share, this.#used);
    return { ...this.name, limit: this.#leasedUnits, claim: this.#claim, held: this.#lastHeld, wanted: this.#wanted };
  }

  apply({ share, others, rank }: LeaseGrant): void {
    // The store does not know a share that was not granted before the next request reports it.
    this.#share = this.#hasUnreportedShare ? Math.max(share, this.#share) : share;
    // If a member has joined, exchanges again at once: the new member gets units only when the other members have lowered their shares.
    if (others.length !== this.#others.others.length) this.makeDue();
    this.#others = { others, rank };
    this.#lastUpdate = undefined;
    this.#hasGrant = true;
  }
}

/** Returns the name of a lease in the state directory. */
export function leaseKey({ owner, resource }: LeaseName): string {
  return `${ownerKey(owner)}:${resource}`;
}

/** Returns a key that tells tenants and Services apart. */
export function ownerKey(owner: LeaseName['owner']): string {
  return owner.kind === 'tenant' ? `tenant.${owner.name}` : `service.${owner.uid}`;
}

/** Returns the request that gives a lease back whose limit was removed. */
export function requestToReturn(name: LeaseName): LeaseRequest {
  return { ...name, limit: 0, claim: { demand: 0, weight: 1, floor: 0, used: 0 }, held: 0, wanted: 0 };
}
