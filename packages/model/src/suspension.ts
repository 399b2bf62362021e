import type { SuspendedReason } from './reason.ts';
import type { Snapshot, SuspensionTarget } from './snapshot.ts';

// A suspension in force, as proxies need it. It travels beside the table, by its own sequence.
export interface Suspension {
  /** UID of the Suspension, or the id of the request while no Suspension exists. */
  readonly uid: string;
  /** Name of the Suspension (also where only the store knows it). */
  readonly name: string;
  readonly target: SuspensionTarget;
  readonly message: string;
  /** Milliseconds since the epoch; null: until deleted. */
  readonly until: number | null;
  readonly reason: SuspendedReason;
  /** Where it must be deleted: an object in the API server, a file, or this entry itself. */
  readonly origin: SuspensionOrigin;
  readonly createdAt: number | null;
}

export type SuspensionOrigin =
  | { readonly kind: 'kubernetes' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'store' };

/** What a Service must be known by to tell whether it is cut off. */
export interface SuspensionSubject {
  readonly tenant: string | null;
  readonly namespace: string;
  readonly name: string;
}

/** The first cut-off that stops the subject at `now` (milliseconds since the epoch), by uid; undefined: none. */
export function suspensionFor(
  cutoffs: readonly Suspension[],
  subject: SuspensionSubject,
  now: number,
): Suspension | undefined {
  let found: Suspension | undefined;
  for (const cutoff of cutoffs) {
    if (!isInForce(cutoff, now) || !isTargetOf(cutoff.target, subject)) continue;
    if (found === undefined || cutoff.uid < found.uid) found = cutoff;
  }
  return found;
}

export function isInForce(cutoff: Suspension, now: number): boolean {
  return cutoff.until === null || now < cutoff.until;
}

/** Whether a suspension of the target stops the subject. */
export function isTargetOf(target: SuspensionTarget, subject: SuspensionSubject): boolean {
  switch (target.kind) {
    case 'tenant':
      return subject.tenant === target.tenant;
    case 'namespace':
      return subject.namespace === target.namespace;
    case 'service':
      return subject.namespace === target.namespace && subject.name === target.service;
  }
}

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
