// Leader election by a Lease of coordination.k8s.io/v1, as kube-controller-manager does it: whoever holds it renews it; who sees it
// unchanged for its whole duration, by the own clock, may take it. Clocks of different machines are never compared.

export const LEASE_DURATION_MS = 15_000;
/** A holder that could not renew for so long leads no more: before anybody else may. */
export const RENEW_DEADLINE_MS = 10_000;
export const RETRY_PERIOD_MS = 2_000;

/** The spec of a Lease, as far as it is read. */
export interface LeaseSpec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

/** A Lease as we know it. */
export interface ObservedLease {
  readonly spec: LeaseSpec;
  /** When we first saw it just so, on a clock that never jumps. */
  readonly since: number;
}

export type ElectionStep =
  | { readonly kind: 'create' | 'take' | 'renew'; readonly spec: LeaseSpec }
  /** Somebody else holds it. */
  | { readonly kind: 'wait'; readonly holder: string };

/** The same observation when the Lease has not changed, else a new one. */
export function observeLease(previous: ObservedLease | undefined, spec: LeaseSpec, monotonic: number): ObservedLease {
  const isSame =
    previous !== undefined &&
    previous.spec.holderIdentity === spec.holderIdentity &&
    previous.spec.renewTime === spec.renewTime &&
    previous.spec.acquireTime === spec.acquireTime;
  return isSame ? previous : { spec, since: monotonic };
}

export interface ElectionInput {
  readonly identity: string;
  /** Milliseconds since the epoch, for what is written. */
  readonly now: number;
  readonly monotonic: number;
}

/** What to do about a Lease; undefined: there is none. */
export function planElection(
  observation: ObservedLease | undefined,
  { identity, now, monotonic }: ElectionInput,
): ElectionStep {
  const time = microTime(now);
  const mine = { holderIdentity: identity, leaseDurationSeconds: LEASE_DURATION_MS / 1000, renewTime: time };
  if (observation === undefined) return { kind: 'create', spec: { ...mine, acquireTime: time, leaseTransitions: 0 } };
  const { spec, since } = observation;
  const holder = spec.holderIdentity ?? '';
  const leaseTransitions = spec.leaseTransitions ?? 0;
  if (holder === identity) {
    return { kind: 'renew', spec: { ...mine, acquireTime: spec.acquireTime ?? time, leaseTransitions } };
  }
  const leaseMs = (spec.leaseDurationSeconds ?? LEASE_DURATION_MS / 1000) * 1000;
  if (holder !== '' && monotonic - since < leaseMs) return { kind: 'wait', holder };
  return { kind: 'take', spec: { ...mine, acquireTime: time, leaseTransitions: leaseTransitions + 1 } };
}

/** What a holder leaves behind when it goes: the next one need not wait. */
export function releasedLease(spec: LeaseSpec, now: number): LeaseSpec {
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(now) };
}

/** metav1.MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
