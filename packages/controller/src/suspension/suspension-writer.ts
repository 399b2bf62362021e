import type { Cutoff } from '@weir/model';

/** Where Suspensions are objects that the controller may write. */
export interface SuspensionWriter {
  /** Deletes the one that was in force, not another that was made under its name. Resolves also when it is gone already. */
  remove(cutoff: Cutoff, signal: AbortSignal): Promise<void>;
}
