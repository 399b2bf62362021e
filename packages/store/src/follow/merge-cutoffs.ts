import { isInForce, type Suspension } from '@weir/model/data-plane';
import type { SuspensionState } from '../contract.ts';

/**
 * The cut-offs in force at `now` (milliseconds since the epoch) for one that knew `known`, by uid. A state that is complete
 * is the truth; in one that is not (the store was wiped) absence means nothing, and only what was removed since is gone.
 */
export function mergeSuspensions(
  known: readonly Suspension[],
  state: SuspensionState,
  now: number,
): readonly Suspension[] {
  const byUid = new Map<string, Suspension>();
  if (!state.complete) for (const cutoff of known) byUid.set(cutoff.uid, cutoff);
  for (const uid of state.removed) byUid.delete(uid);
  for (const cutoff of state.suspensions) byUid.set(cutoff.uid, cutoff);
  return [...byUid.values()].filter((cutoff) => isInForce(cutoff, now)).sort((a, b) => (a.uid < b.uid ? -1 : 1));
}
