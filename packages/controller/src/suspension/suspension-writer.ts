import type { Suspension, SuspensionObject } from '@weir/model';

/** Where Suspensions are objects that the controller may write. */
export interface SuspensionObjectWriter {
  /** The Suspension under the cut-off's name: created, or the one that is there already, whatever it says. */
  getOrCreate(cutoff: Suspension, signal: AbortSignal): Promise<SuspensionObject>;
  /** Deletes the one that was in force, not another that was made under its name. Resolves also when it is gone already. */
  remove(cutoff: Suspension, signal: AbortSignal): Promise<void>;
}
