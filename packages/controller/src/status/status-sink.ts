import type { ServiceView } from '@weir/model';

/** Whoever tells Services what became of them. A directory has nobody. */
export interface StatusSink {
  /** Counts up whenever a Service says something else than before, whoever made it. */
  readonly observed: number;
  /**
   * Makes the Services say what the views say; what says it already costs nothing, and a view that is the same object as before is
   * not looked into. `again`: some changed meanwhile, and want to be looked at anew. Rejects when the API server is away.
   */
  write(views: readonly ServiceView[], signal: AbortSignal): Promise<'done' | 'again'>;
  /** The same while nothing can be decided: only for Services that say nothing yet, and no others are touched. */
  writeUndecided(views: readonly ServiceView[], signal: AbortSignal): Promise<void>;
}
