// What connections to an endpoint have shown: one that takes none is left out for a while, longer each time (as Envoy's
// outlier detection by consecutive local-origin failures does). Times are milliseconds of a clock that never jumps.

export interface EjectionState {
  /** Connects in a row that failed. */
  readonly consecutiveFailures: number;
  readonly ejectionCount: number;
  /** Of the last ejection. */
  readonly ejectedAt: number;
  readonly ejectedUntil: number;
}

export const INITIAL_EJECTION_STATE: EjectionState = {
  consecutiveFailures: 0,
  ejectionCount: 0,
  ejectedAt: Number.NEGATIVE_INFINITY,
  ejectedUntil: Number.NEGATIVE_INFINITY,
};

/** So many connects in a row must fail. */
export const EJECTION_THRESHOLD_FAILURES = 3;
/** For so long times the number of ejections. */
export const BASE_EJECTION_MS = 10_000;
export const MAX_EJECTION_MS = 300_000;
/** After so long without an ejection the next one is the first again. */
export const EJECTION_COUNT_RESET_MS = 600_000;

/**
 * After `count` more connects that failed. What is ejected already stays so for no longer; back again, and without a
 * success since, its first failure is one too many.
 */
export function recordConnectFailures(state: EjectionState, count: number, now: number): EjectionState {
  const consecutiveFailures = state.consecutiveFailures + count;
  if (consecutiveFailures < EJECTION_THRESHOLD_FAILURES || isEjected(state, now))
    return { ...state, consecutiveFailures };
  const ejectionCount = (now - state.ejectedUntil < EJECTION_COUNT_RESET_MS ? state.ejectionCount : 0) + 1;
  const forMs = Math.min(ejectionCount * BASE_EJECTION_MS, MAX_EJECTION_MS);
  return { consecutiveFailures, ejectionCount, ejectedAt: now, ejectedUntil: now + forMs };
}

/** After a connect that succeeded: whoever answers is not left out any longer. */
export function recordConnectSuccess(state: EjectionState, now: number): EjectionState {
  return { ...state, consecutiveFailures: 0, ejectedUntil: Math.min(state.ejectedUntil, now) };
}

export function isEjected({ ejectedUntil }: EjectionState, now: number): boolean {
  return now < ejectedUntil;
}

/** Whether the state is no other than that of an endpoint which never failed. */
export function isEjectionHistoryOver({ consecutiveFailures, ejectedUntil }: EjectionState, now: number): boolean {
  return consecutiveFailures === 0 && now - ejectedUntil >= EJECTION_COUNT_RESET_MS;
}
