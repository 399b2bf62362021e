import type { ServiceView } from '@weir/model';

/** Whoever tells Services what became of them. A directory has nobody. */
export interface StatusSink {
  /**
   * Makes the Services say what the views say; what says it already costs nothing. One that changed meanwhile is left for the next
   * call. Rejects when the API server is away.
   */
  write(views: readonly ServiceView[], signal: AbortSignal): Promise<void>;
}
