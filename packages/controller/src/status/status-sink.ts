import type { ServiceView } from '@weir/model';

/** What lasts is told again (why a Service is refused, or pending), and what was refused is tried again: so often it is looked at. */
export const STATUS_RECHECK_MS = 30_000;

/** What the Services are to say. */
export interface DesiredViews {
  /** `undecided`: nothing could be decided, so only those are told that say nothing yet, and no others are touched. */
  readonly kind: 'decided' | 'undecided';
  readonly views: readonly ServiceView[];
}

/** Whoever tells Services what became of them. A directory has nobody. */
export interface StatusSink {
  /** Counts up whenever a Service says something else than before, whoever made it. */
  readonly observedRevision: number;
  /**
   * From now on they are to say this. It is only noted: what is being written goes on, and each Service is told the newest. A view that
   * is the same object as before is not looked into.
   */
  setDesired(wanted: DesiredViews): void;
  /**
   * Makes them say it; those that do cost nothing. `recheck`: some changed meanwhile, and want to be looked at anew. Rejects when the
   * API server is away.
   */
  write(signal: AbortSignal): Promise<'complete' | 'recheck'>;
}
