import type { Cutoff, SuspensionObject } from '@weir/model';

/** Where Suspensions are objects that the controller may write. */
export interface SuspensionWriter {
  /** The Suspension under the cut-off's name: created, or the one that is there already, whatever it says. */
  make(cutoff: Cutoff, signal: AbortSignal): Promise<SuspensionObject>;
  /** Deletes the one that was in force, not another that was made under its name. Resolves also when it is gone already. */
  remove(cutoff: Cutoff, signal: AbortSignal): Promise<void>;
}
