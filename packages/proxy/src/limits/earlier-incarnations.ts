// Releases the shares of limits that earlier incarnations of this proxy's node still hold, for example because they were killed.
import type { Clock } from '@weir/runtime';
import type { LeaseStore } from '@weir/store';

/** The time over which a rate is limited. */
export const RATE_WINDOW_MS = 1_000;
/** How long to wait at least before looking again whether an earlier incarnation has ended. */
const MIN_GAP_MS = 100;

export interface EarlierIncarnationsOptions {
  readonly node: string;
  readonly leases: Pick<LeaseStore, 'members' | 'release'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export class EarlierIncarnations {
  readonly #options: EarlierIncarnationsOptions;
  /** When to look again for earlier incarnations, in milliseconds of the monotonic clock. */
  #releaseAt = Number.POSITIVE_INFINITY;

  constructor(options: EarlierIncarnationsOptions) {
    this.#options = options;
  }

  /** To be called when this proxy alone serves the node. From then on, `isDue` returns true until nothing is left to release. */
  releaseWhenEnded(): void {
    this.#releaseAt = Number.NEGATIVE_INFINITY;
  }

  /** Reports whether `release` should be called at `now`, in milliseconds of the monotonic clock. */
  isDue(now: number): boolean {
    return now >= this.#releaseAt;
  }

  /**
   * Releases the shares of the incarnations before `life` that have not called the store for a second. The clients of the other
   * earlier incarnations may still count. An incarnation that drains usually calls the store every 0.5 s. If it is released
   * nevertheless, it registers again with its next exchange. Throws StoreError; the release then stays due.
   */
  async release(life: number): Promise<void> {
    const { node, leases, clock } = this.#options;
    const earlier = (await leases.members()).filter((member) => member.node === node && member.life < life);
    let releaseAt = Number.POSITIVE_INFINITY;
    for (const { life: earlierLife, silentMs } of earlier) {
      const waitMs = RATE_WINDOW_MS - silentMs;
      if (waitMs <= 0) await leases.release(node, earlierLife);
      else releaseAt = Math.min(releaseAt, clock.monotonic() + Math.max(MIN_GAP_MS, waitMs));
    }
    this.#releaseAt = releaseAt;
  }
}
