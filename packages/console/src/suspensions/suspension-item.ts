import { isInForce, type Suspension, type SuspensionOrigin, type SuspensionSubject, suspensionFor } from '@weir/model';
import { type TargetJson, targetToJson } from './suspension-object.ts';

/** One item of `/api/v1/suspensions`. */
export interface SuspensionItem {
  readonly name: string;
  readonly target: TargetJson;
  readonly message: string;
  /** RFC 3339; null: until somebody resumes. */
  readonly until: string | null;
  readonly reason: string;
  readonly inForce: boolean;
  readonly origin: SuspensionOrigin;
  readonly createdAt: string | null;
}

export function suspensionItemFor(cutoff: Suspension, now: number): SuspensionItem {
  return {
    name: cutoff.name,
    target: targetToJson(cutoff.target),
    message: cutoff.message,
    until: rfc3339(cutoff.until),
    reason: cutoff.reason,
    inForce: isInForce(cutoff, now),
    origin: cutoff.origin,
    createdAt: rfc3339(cutoff.createdAt),
  };
}

function rfc3339(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Those that stop the subject now; several may. */
export function suspensionsFor(
  cutoffs: readonly Suspension[],
  subject: SuspensionSubject,
  now: number,
): SuspensionItem[] {
  return cutoffs
    .filter((cutoff) => suspensionFor([cutoff], subject, now) !== undefined)
    .map((cutoff) => suspensionItemFor(cutoff, now));
}
