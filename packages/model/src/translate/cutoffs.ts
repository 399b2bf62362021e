import type { Suspension, SuspensionOrigin } from '../cutoff.ts';
import type { Snapshot } from '../snapshot.ts';

/** The Suspensions of a snapshot as proxies need them, by uid. `originOf` tells where each is to be deleted. */
export function suspensionsFor(snapshot: Snapshot, originOf: (uid: string) => SuspensionOrigin): Suspension[] {
  return snapshot.suspensions
    .map(
      (suspension): Suspension => ({
        uid: suspension.uid,
        name: suspension.name,
        target: suspension.target,
        message: suspension.message,
        until: suspension.until,
        reason: suspension.rule === null ? 'SuspendedByOperator' : 'SuspendedByRule',
        origin: originOf(suspension.uid),
        createdAt: suspension.createdAt,
      }),
    )
    .sort((a, b) => (a.uid < b.uid ? -1 : 1));
}
