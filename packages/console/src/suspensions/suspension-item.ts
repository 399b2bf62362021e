import { type Cutoff, type CutoffOrigin, type CutoffSubject, cutoffFor, isInForce } from '@weir/model';
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
  readonly origin: CutoffOrigin;
  readonly createdAt: string | null;
}

export function suspensionItemFor(cutoff: Cutoff, now: number): SuspensionItem {
  return {
    name: cutoff.name,
    target: targetToJson(cutoff.target),
    message: cutoff.message,
    until: timeOf(cutoff.until),
    reason: cutoff.reason,
    inForce: isInForce(cutoff, now),
    origin: cutoff.origin,
    createdAt: timeOf(cutoff.createdAt),
  };
}

function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Those that stop the subject now; several may. */
export function suspensionsOf(cutoffs: readonly Cutoff[], subject: CutoffSubject, now: number): SuspensionItem[] {
  return cutoffs
    .filter((cutoff) => cutoffFor([cutoff], subject, now) !== undefined)
    .map((cutoff) => suspensionItemFor(cutoff, now));
}
