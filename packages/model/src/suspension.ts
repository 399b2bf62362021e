import type { SuspendedReason } from './reason.ts';
import type { Snapshot, SuspensionObject, SuspensionTarget } from './snapshot.ts';
import { timestampOf } from './usage/period.ts';

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
  /** Where an operator deletes the suspension: in the API server, in a file, in the store, or on a node. */
  readonly origin: SuspensionOrigin;
  readonly createdAt: number | null;
  /** The user who made the suspension. Absent if a rule made it, or if the user is not known. */
  readonly madeBy?: string;
  /** The rule that made the suspension, with the figures that the rule acted on. Absent if a person made the suspension. */
  readonly rule?: string;
}

export type SuspensionOrigin =
  | { readonly kind: 'kubernetes' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'store' }
  /** Only this node's proxy knows the suspension, because an administrator made it on the node with `weir suspend --local`. */
  | { readonly kind: 'local'; readonly node: string };

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
 * Returns the suspensions of a snapshot in the form that proxies apply, sorted by UID. `originOf` returns where the object with a UID is
 * stored, and therefore where an operator can delete the object.
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
        ...authorOf(suspension),
      }),
    )
    .sort((a, b) => (a.uid < b.uid ? -1 : 1));
}

/** Returns the fields of a suspension that say who or what made its Suspension object. */
export function authorOf({
  madeBy,
  rule,
}: Pick<SuspensionObject, 'madeBy' | 'rule'>): Pick<Suspension, 'madeBy' | 'rule'> {
  if (rule !== null) return { rule };
  return madeBy === null ? {} : { madeBy };
}

/** Returns who or what made the suspension, such as `by alice` or `by rule egress: 1.4 Gbit/s for 5m, above 1 Gbit/s`. */
export function suspendedByText({ madeBy, rule, origin }: Pick<Suspension, 'madeBy' | 'rule' | 'origin'>): string {
  if (rule !== undefined) return `by rule ${rule.replace(/^rule /, '')}`;
  if (madeBy !== undefined) return `by ${madeBy}`;
  return origin.kind === 'file' ? 'by a manifest' : 'by an unknown user';
}

/** Returns when, by whom or what, and until when a Service was suspended: `suspended 2026-01-31T18:00:00Z by alice`, or with `, until …`. */
export function suspendedText(suspension: Suspension): string {
  const { createdAt, until } = suspension;
  const since = createdAt === null ? '' : `${timestampOf(createdAt)} `;
  return `suspended ${since}${suspendedByText(suspension)}${until === null ? '' : `, until ${timestampOf(until)}`}`;
}

/** The annotation in which the console names the user who requested a Suspension. The API server itself knows only the console's account. */
export const MADE_BY_ANNOTATION = 'weir.dev/made-by';
const MAX_MADE_BY_LENGTH = 128;

/**
 * Returns who made a Suspension object: the user in its annotation, or else the field manager that wrote its spec, which names a program
 * and not a user; null if neither is known. Neither is proof, because users who may write Suspensions can write both.
 */
export function madeByOf(annotation: string | undefined, fieldManager: string | undefined): string | null {
  if (annotation !== undefined && annotation !== '') return annotation.slice(0, MAX_MADE_BY_LENGTH);
  return fieldManager === undefined ? null : `an unknown user of ${fieldManager.slice(0, MAX_MADE_BY_LENGTH)}`;
}
