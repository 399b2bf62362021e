import type { ServiceView } from '@weir/model';

/** After this many overwrites within `WINDOW_MS`, a dispute begins, and the status is written less and less often. */
const MAX_OVERWRITES = 5;
const WINDOW_MS = 60_000;
/** How long to wait for the next write after an overwrite. The time doubles with each overwrite. */
const MIN_BACKOFF_MS = 30_000;
const MAX_BACKOFF_MS = 300_000;
/** A dispute ends when the status has not been overwritten for this time. */
const END_AFTER_MS = 2 * MAX_BACKOFF_MS;

interface ShownStatus {
  readonly view: ServiceView;
  /** Whether another controller has overwritten the status since, and the overwrite was counted. */
  isOverwritten: boolean;
}

interface Overwrites {
  /** The times of the last overwrites, at most `MAX_OVERWRITES`. */
  readonly times: readonly number[];
  /** The field manager that overwrote the status last. */
  readonly manager: string;
  /** Undefined while there were fewer than `MAX_OVERWRITES` within `WINDOW_MS`. */
  readonly dispute: { readonly backoffMs: number; readonly writeAt: number } | undefined;
}

/**
 * Counts how often other controllers overwrite the status that this controller has written, and decides when to write the status again.
 * Without this class, two controllers that serve the same Service would overwrite each other's status forever. Times are milliseconds of
 * the monotonic clock.
 */
export class StatusDisputes {
  readonly #shownByUid = new Map<string, ShownStatus>();
  readonly #overwritesByUid = new Map<string, Overwrites>();

  /**
   * Call this when the Service shows the status for `view`. `isOverwritten` is true if the Service shows its conditions, but the addresses
   * of another controller.
   */
  recordShown(uid: string, view: ServiceView, { isOverwritten }: { readonly isOverwritten: boolean }): void {
    this.#shownByUid.set(uid, { view, isOverwritten });
  }

  /**
   * Call this when the Service does not show the status for `view`. If the Service has shown that status before, `manager` has
   * overwritten the status.
   */
  recordDifference(
    uid: string,
    view: ServiceView,
    { manager, now }: { readonly manager: string; readonly now: number },
  ): void {
    const shown = this.#shownByUid.get(uid);
    if (shown?.view !== view || shown.isOverwritten) return;
    shown.isOverwritten = true;
    const before = this.#overwritesByUid.get(uid);
    const times = [...(before?.times ?? []), now].slice(-MAX_OVERWRITES);
    this.#overwritesByUid.set(uid, { times, manager, dispute: disputeAfter(times, before?.dispute) });
  }

  /** Returns the field manager with which this controller is in dispute about the Service; undefined if there is none. */
  opponentOf(uid: string, now: number): string | undefined {
    const overwrites = this.#overwritesByUid.get(uid);
    if (overwrites?.dispute === undefined) return undefined;
    if (now - (overwrites.times.at(-1) ?? now) < END_AFTER_MS) return overwrites.manager;
    this.#overwritesByUid.delete(uid);
    // The status that was shown names the opponent, so the next difference is not an overwrite.
    this.#shownByUid.delete(uid);
    return undefined;
  }

  /**
   * Returns what may be written now. `conditions`: only the conditions, because the view has changed; the addresses of the other controller
   * stay.
   */
  permittedWrite(uid: string, view: ServiceView, now: number): 'status' | 'conditions' | 'nothing' {
    const { dispute } = this.#overwritesByUid.get(uid) ?? {};
    if (dispute === undefined || now >= dispute.writeAt) return 'status';
    return this.#shownByUid.get(uid)?.view === view ? 'nothing' : 'conditions';
  }

  /** Forgets the Services whose UID does not exist any more. */
  keepOnly(exists: (uid: string) => boolean): void {
    for (const byUid of [this.#shownByUid, this.#overwritesByUid])
      for (const uid of byUid.keys()) if (!exists(uid)) byUid.delete(uid);
  }
}

/** Returns the dispute after an overwrite. The first write of a dispute is due at once, because the written status names the dispute. */
function disputeAfter(times: readonly number[], before: Overwrites['dispute']): Overwrites['dispute'] {
  const now = times.at(-1) ?? 0;
  if (before !== undefined) {
    const backoffMs = Math.min(MAX_BACKOFF_MS, 2 * before.backoffMs);
    return { backoffMs, writeAt: now + before.backoffMs };
  }
  const isMany = times.length === MAX_OVERWRITES && now - (times[0] ?? now) < WINDOW_MS;
  return isMany ? { backoffMs: MIN_BACKOFF_MS, writeAt: now } : undefined;
}
