// Passive health: an endpoint is ejected for a while after several failed attempts to connect, or several failed answers, in a row. Each
// ejection is longer than the ejection before, up to `MAX_EJECTION_MS` (as in Envoy's outlier detection by consecutive local-origin
// failures and consecutive gateway failures). Times are milliseconds of a monotonic clock.

export interface EjectionState {
  /** Failed attempts to connect since the last successful attempt. */
  readonly consecutiveFailures: number;
  readonly ejectionCount: number;
  /** Start of the last ejection. */
  readonly ejectedAt: number;
  readonly ejectedUntil: number;
  /** What caused the last ejection, so that a connection to an endpoint that only fails to answer does not end the ejection. */
  readonly cause: 'connects' | 'answers';
}

export const INITIAL_EJECTION_STATE: EjectionState = {
  consecutiveFailures: 0,
  ejectionCount: 0,
  ejectedAt: Number.NEGATIVE_INFINITY,
  ejectedUntil: Number.NEGATIVE_INFINITY,
  cause: 'connects',
};

/** The number of failed attempts to connect in a row after which an endpoint is ejected. */
export const EJECTION_THRESHOLD_FAILURES = 3;
/**
 * The number of consecutive HTTP requests without a good answer after which a worker reports the endpoint as failing: the answer was 502,
 * 503 or 504, or a new connection ended before the answer. The default of Envoy's `consecutive_gateway_failure`.
 */
export const EJECTION_THRESHOLD_ANSWERS = 5;
/** The length of the first ejection. The length of a later ejection is this time multiplied by the number of ejections. */
export const BASE_EJECTION_MS = 10_000;
export const MAX_EJECTION_MS = 300_000;
/** The time without an ejection after which the number of ejections starts again at one. */
export const EJECTION_COUNT_RESET_MS = 600_000;

/**
 * Returns the state after `count` more failed attempts to connect at `now` (ms). A failure during an ejection does not prolong the
 * ejection. After an ejection, the first failure ejects the endpoint again, unless an attempt succeeded in between.
 */
export function recordConnectFailures(state: EjectionState, count: number, now: number): EjectionState {
  const consecutiveFailures = state.consecutiveFailures + count;
  if (consecutiveFailures < EJECTION_THRESHOLD_FAILURES || isEjected(state, now))
    return { ...state, consecutiveFailures };
  return eject({ ...state, consecutiveFailures, cause: 'connects' }, now);
}

/** Returns the state after a successful attempt to connect at `now` (ms). The success ends an ejection because of failed attempts. */
export function recordConnectSuccess(state: EjectionState, now: number): EjectionState {
  const ejectedUntil = state.cause === 'connects' ? Math.min(state.ejectedUntil, now) : state.ejectedUntil;
  return { ...state, consecutiveFailures: 0, ejectedUntil };
}

/** Returns the state after a worker has reported at `now` (ms) that the endpoint fails to answer. Does not prolong an ejection. */
export function recordFailedAnswers(state: EjectionState, now: number): EjectionState {
  return isEjected(state, now) ? state : eject({ ...state, cause: 'answers' }, now);
}

/** Returns the state after the first good answer, at `now` (ms), after failed answers. The answer ends an ejection because of them. */
export function recordGoodAnswer(state: EjectionState, now: number): EjectionState {
  return state.cause === 'answers' ? { ...state, ejectedUntil: Math.min(state.ejectedUntil, now) } : state;
}

function eject(state: EjectionState, now: number): EjectionState {
  const ejectionCount = (now - state.ejectedUntil < EJECTION_COUNT_RESET_MS ? state.ejectionCount : 0) + 1;
  const forMs = Math.min(ejectionCount * BASE_EJECTION_MS, MAX_EJECTION_MS);
  return { ...state, ejectionCount, ejectedAt: now, ejectedUntil: now + forMs };
}

/** Whether an endpoint is ejected at `now` (ms). */
export function isEjected({ ejectedUntil }: EjectionState, now: number): boolean {
  return now < ejectedUntil;
}

/** Whether the state behaves like `INITIAL_EJECTION_STATE` and therefore need not be kept. */
export function isEjectionHistoryOver({ consecutiveFailures, ejectedUntil }: EjectionState, now: number): boolean {
  return consecutiveFailures === 0 && now - ejectedUntil >= EJECTION_COUNT_RESET_MS;
}
