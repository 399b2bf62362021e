import type { SuspendedReason } from './reason.ts';
import type { Snapshot, SuspensionTarget } from './snapshot.ts';

// A suspension in the form that proxies apply. Suspensions reach the proxies outside of the routing table, with their own sequence numbers.
export interface Suspension {
  /** UID of the Suspension object, or the id of the request until the object exists. */
  readonly uid: string;
  /** Name of the Suspension object, even if so far only the store holds the suspension. */
  readonly name: string;
  readonly target: SuspensionTarget;
  readonly message: string;
  /** Milliseconds since the epoch; null if the suspension holds until it is deleted. */
  readonly until: number | null;
  readonly reason: SuspendedReason;
  /** Where an operator deletes the suspension: in the API server, in a file, or in the store. */
  readonly origin: SuspensionOrigin;
  readonly createdAt: number | null;
}

export type SuspensionOrigin =
  | { readonly kind: 'kubernetes' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'store' };

/** The properties of a Service that decide whether a suspension stops the Service. */
export interface SuspensionSubject {
  readonly tenant: string | null;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Returns the suspension with the lowest UID that stops the subject at `now` (milliseconds since the epoch); undefined if no suspension
 * stops the subject.
 */
export function suspensionFor(
  suspensions: readonly Suspension[],
  subject: SuspensionSubject,
  now: number,
): Suspension | undefined {
  let found: Suspension | undefined;
  for (const suspension of suspensions) {
    if (!isInForce(suspension, now) || !isTargetOf(suspension.target, subject)) continue;
    if (found === undefined || suspension.uid < found.uid) found = suspension;
  }
  return found;
}

/** Whether a suspension has not expired at `now` (milliseconds since the epoch). */
export function isInForce(suspension: Suspension, now: number): boolean {
  return suspension.until === null || now < suspension.until;
}

/** Whether a suspension with this target stops the subject. */
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

/**
 * Returns the suspensions of a snapshot in the form that proxies apply, sorted by UID. `originOf` returns where the
 * object with a UID is stored, which is where an operator can delete it.
 */
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
