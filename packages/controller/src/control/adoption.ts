import { isDeepStrictEqual } from 'node:util';
import { isInForce, type Suspension, type SuspensionObject } from '@weir/model';

export type AdoptionPlan =
  | { readonly kind: 'adopt'; readonly cutoff: Suspension }
  /** The request stays in the store, and in force. */
  | { readonly kind: 'refuse'; readonly why: string };

/** Whether a Suspension may stand for a cut-off that was made in the store. `now`: milliseconds since the epoch. */
export function planAdoption(request: Suspension, found: SuspensionObject, now: number): AdoptionPlan {
  const { uid, name, target, message, until, rule, createdAt } = found;
  const cutoff: Suspension = {
    uid,
    name,
    target,
    message,
    until,
    reason: rule === null ? 'SuspendedByOperator' : 'SuspendedByRule',
    origin: { kind: 'kubernetes' },
    createdAt,
  };
  if (!isDeepStrictEqual({ ...target }, { ...request.target })) {
    return { kind: 'refuse', why: `Suspension "${name}" is for another target; delete or rename it` };
  }
  if (!isInForce(cutoff, now)) return { kind: 'refuse', why: `Suspension "${name}" is over, but not deleted yet` };
  if (!isNewer(found, request) && endOf(until) < endOf(request.until)) {
    return { kind: 'refuse', why: `Suspension "${name}" was there before, and ends sooner` };
  }
  return { kind: 'adopt', cutoff };
}

/** Then whoever made it knew better. The API server counts in seconds. */
function isNewer(found: SuspensionObject, request: Suspension): boolean {
  return found.createdAt !== null && request.createdAt !== null && found.createdAt + 1_000 > request.createdAt;
}

function endOf(until: number | null): number {
  return until ?? Number.POSITIVE_INFINITY;
}
