import type { ServiceView } from '@weir/model';

/** How often Services are checked for Events to renew and for refused writes to retry. */
export const STATUS_RECHECK_MS = 30_000;

/** The status that the Services should show. */
export interface DesiredViews {
  /**
   * `undecided`: there is no translation yet. Only Services that have no status get the desired status; other Services keep their status.
   */
  readonly kind: 'decided' | 'undecided';
  readonly views: readonly ServiceView[];
}

/** Writes the status of Services. A controller that reads manifest files has no sink. */
export interface StatusSink {
  /** Increases whenever any client changes the status of a Service. */
  readonly observedRevision: number;
  /**
   * Sets the desired status for the next `write`, and for the Services that a running `write` has not reached yet. A view that is the
   * same object as before counts as unchanged.
   */
  setDesired(desired: DesiredViews): void;
  /**
   * Writes the desired status of all Services that do not show it yet. Returns `recheck` if a Service changed during its write, or if
   * the write of a Service failed; then call `setDesired` and `write` again. Rejects if the API server is unreachable.
   */
  write(signal: AbortSignal): Promise<'complete' | 'recheck'>;
}
