// Releases the shares of limits that ended incarnations of this proxy's node still hold, for example because they were killed.
import type { Clock } from '@weir/runtime';
import type { LeaseStore } from '@weir/store';
import { RATE_WINDOW_MS } from './lease-demand.ts';

/** How long to wait at least before the next check. */
const MIN_GAP_MS = 100;
/** How long to wait before the next check after a release. An incarnation that was silent but lives registers again. */
const GAP_AFTER_RELEASE_MS = 5_000;

export interface OtherIncarnationsOptions {
  readonly node: string;
  readonly leases: Pick<LeaseStore, 'members' | 'release'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly isDraining: () => boolean;
}

export class OtherIncarnations {
  readonly #options: OtherIncarnationsOptions;
  /** In milliseconds of the monotonic clock. */
  #nextCheckAt = Number.POSITIVE_INFINITY;
  readonly #formerIncarnations = new Set<number>();

  constructor(options: OtherIncarnationsOptions) {
    this.#options = options;
  }

  /** To be called when this proxy alone serves the node. */
  startReleasing(): void {
    this.#nextCheckAt = Number.NEGATIVE_INFINITY;
  }

  /** To be called when this process begins a new incarnation. */
  addFormerIncarnation(incarnation: number): void {
    this.#formerIncarnations.add(incarnation);
  }

  /** Reports whether `releaseEnded` should be called at `now`, in milliseconds of the monotonic clock. */
  isDue(now: number): boolean {
    return this.#formerIncarnations.size > 0 || now >= this.#nextCheckAt;
  }

  /**
   * Releases the shares of all incarnations of the node other than `own` that have ended: the former ones of this process, and
   * the incarnations that have not called the store for a second. The clients of an incarnation that has called within the last second
   * may still count for a rate. An incarnation that drains usually calls the store every 0.5 s. If it is released by mistake, its next
   * exchange registers it again. If this throws StoreError, `isDue` returns true again.
   */
  async releaseEnded(own: number): Promise<void> {
    const { node, leases, clock, isDraining } = this.#options;
    for (const former of this.#formerIncarnations) {
      await leases.release(node, former);
      this.#formerIncarnations.delete(former);
    }
    if (clock.monotonic() < this.#nextCheckAt) return;
    this.#nextCheckAt = Number.POSITIVE_INFINITY;
    // A proxy that drains may have a successor on the node, which releases the incarnations that have ended.
    if (isDraining()) return;
    try {
      for (const member of await leases.members()) {
        if (member.node !== node || member.life === own) continue;
        const waitMs = RATE_WINDOW_MS - member.silentMs;
        if (waitMs <= 0) await leases.release(node, member.life);
        const gapMs = waitMs <= 0 ? GAP_AFTER_RELEASE_MS : Math.max(MIN_GAP_MS, waitMs);
        this.#nextCheckAt = Math.min(this.#nextCheckAt, clock.monotonic() + gapMs);
      }
    } catch (error) {
      this.startReleasing();
      throw error;
    }
  }
}
