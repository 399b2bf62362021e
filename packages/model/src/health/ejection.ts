// What connections to an endpoint have shown: one that takes none is left out for a while, longer each time (as Envoy's
// outlier detection by consecutive local-origin failures does). Times are milliseconds of a clock that never jumps.

export interface EjectionState {
  /** Connects in a row that failed. */
  readonly failures: number;
  readonly ejections: number;
  /** Of the last ejection. */
  readonly since: number;
  readonly until: number;
}

export const NEVER_FAILED: EjectionState = {
  failures: 0,
  ejections: 0,
  since: Number.NEGATIVE_INFINITY,
  until: Number.NEGATIVE_INFINITY,
};

/** So many connects in a row must fail. */
export const EJECTING_FAILURES = 3;
/** For so long times the number of ejections. */
export const EJECTION_MS = 10_000;
export const LONGEST_EJECTION_MS = 300_000;
/** After so long without an ejection the next one is the first again. */
export const EJECTIONS_FORGOTTEN_MS = 600_000;

/**
 * After `count` more connects that failed. What is ejected already stays so for no longer; back again, and without a
 * success since, its first failure is one too many.
 */
export function connectsFailed(state: EjectionState, count: number, now: number): EjectionState {
  const failures = state.failures + count;
  if (failures < EJECTING_FAILURES || isEjected(state, now)) return { ...state, failures };
  const ejections = (now - state.until < EJECTIONS_FORGOTTEN_MS ? state.ejections : 0) + 1;
  const forMs = Math.min(ejections * EJECTION_MS, LONGEST_EJECTION_MS);
  return { failures, ejections, since: now, until: now + forMs };
}

/** After a connect that succeeded: whoever answers is not left out any longer. */
export function connectSucceeded(state: EjectionState, now: number): EjectionState {
  return { ...state, failures: 0, until: Math.min(state.until, now) };
}

export function isEjected({ until }: EjectionState, now: number): boolean {
  return now < until;
}

/** Whether the state is no other than that of an endpoint which never failed. */
export function isForgotten({ failures, until }: EjectionState, now: number): boolean {
  return failures === 0 && now - until >= EJECTIONS_FORGOTTEN_MS;
}
