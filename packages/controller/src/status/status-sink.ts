import type { ServiceView } from '@weir/model';

/** How often Services are checked for Events to renew and for refused writes to retry. */
export const STATUS_RECHECK_MS = 30_000;

/** The status that the Services should show. */
export interface DesiredViews {
  /** `undecided`: there is no translation, so only Services without a status get one, and all others keep theirs. */
  readonly kind: 'decided' | 'undecided';
  readonly views: readonly ServiceView[];
}

/** Writes the status of Services. A source of files has no sink. */
export interface StatusSink {
  /** Increases whenever any client changes the status of a Service. */
  readonly observedRevision: number;
  /**
   * Sets the desired status for the next `write`, and for the Services that a write under way has not reached. A view that is the same
   * object as before is not compared again.
   */
  setDesired(desired: DesiredViews): void;
  /**
   * Writes the status of the Services that do not show it yet. `recheck`: some Services changed meanwhile, so `setDesired` and `write`
   * are due again. Rejects if the API server is unreachable.
   */
  write(signal: AbortSignal): Promise<'complete' | 'recheck'>;
}
