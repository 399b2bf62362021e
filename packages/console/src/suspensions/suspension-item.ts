import {
  isInForce,
  type Suspension,
  type SuspensionOrigin,
  type SuspensionSubject,
  type SuspensionTarget,
  suspensionFor,
} from '@weir/model/cut-off';
import type { SuspensionAuditRecord, SuspensionRelease } from '@weir/store';

/** The target of a Suspension in the JSON of the Suspension object and of the console's API. */
export interface TargetJson {
  readonly type: 'Tenant' | 'Namespace' | 'Service';
  readonly tenant?: string;
  readonly namespace?: string;
  readonly service?: string;
}

export function targetToJson(target: SuspensionTarget): TargetJson {
  switch (target.kind) {
    case 'tenant':
      return { type: 'Tenant', tenant: target.tenant };
    case 'namespace':
      return { type: 'Namespace', namespace: target.namespace };
    case 'service':
      return { type: 'Service', namespace: target.namespace, service: target.service };
  }
}

/** One item of `/api/v1/suspensions`. */
export interface SuspensionItem {
  readonly name: string;
  readonly target: TargetJson;
  readonly message: string;
  /** End of the Suspension as RFC 3339, or null if the Suspension has no end. */
  readonly until: string | null;
  readonly reason: string;
  readonly inForce: boolean;
  readonly origin: SuspensionOrigin;
  readonly createdAt: string | null;
  /** The user who made the Suspension, or the program if only the program is known; null if a rule made the Suspension, or if unknown. */
  readonly madeBy: string | null;
  /** The rule that made the Suspension, with its figures; null if a person made the Suspension. */
  readonly rule: string | null;
}

export function suspensionItemFor(suspension: Suspension, now: number): SuspensionItem {
  return {
    name: suspension.name,
    target: targetToJson(suspension.target),
    message: suspension.message,
    until: rfc3339(suspension.until),
    reason: suspension.reason,
    inForce: isInForce(suspension, now),
    origin: suspension.origin,
    createdAt: rfc3339(suspension.createdAt),
    madeBy: suspension.madeBy ?? null,
    rule: suspension.rule ?? null,
  };
}

/** One item of `/api/v1/suspensions/audit`: a Suspension that was made, changed or released. */
export interface SuspensionAuditItem {
  /** For `?before=`. */
  readonly id: string;
  /** RFC 3339. */
  readonly at: string;
  readonly action: 'Suspended' | 'Released';
  /** Why the Suspension was released; null if it was made or changed. */
  readonly why: SuspensionRelease['why'] | null;
  /** The user who released the Suspension; null if it was made or changed, or if the user is not known. */
  readonly releasedBy: string | null;
  readonly suspension: Omit<SuspensionItem, 'inForce'>;
}

export function suspensionAuditItemFor({ id, at, suspension, release }: SuspensionAuditRecord): SuspensionAuditItem {
  const { inForce: _, ...item } = suspensionItemFor(suspension, at);
  return {
    id,
    at: new Date(at).toISOString(),
    action: release === null ? 'Suspended' : 'Released',
    why: release?.why ?? null,
    releasedBy: release?.by ?? null,
    suspension: item,
  };
}

/**
 * Leaves out the release that the controller recorded for the deletion of an object, if the records also have the release by the user who
 * deleted this object through the console. `records` are newest first.
 */
export function withoutDoubleReleases(records: readonly SuspensionAuditRecord[]): readonly SuspensionAuditRecord[] {
  const released = new Set(
    records.flatMap(({ suspension, release }) => (release?.by === undefined ? [] : [suspension.uid])),
  );
  return records.filter(({ suspension, release }) => release?.why !== 'deleted' || !released.has(suspension.uid));
}

function rfc3339(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Returns all Suspensions that cut off the subject at `now` (milliseconds since the epoch). */
export function suspensionItemsFor(
  suspensions: readonly Suspension[],
  subject: SuspensionSubject,
  now: number,
): SuspensionItem[] {
  return suspensions
    .filter((suspension) => suspensionFor([suspension], subject, now) !== undefined)
    .map((suspension) => suspensionItemFor(suspension, now));
}
