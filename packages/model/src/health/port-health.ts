import type { HealthCheck, HealthCheckTiming } from '../settings/service-settings.ts';
import { type EjectionState, isEjected } from './ejection.ts';

/** What is known of one endpoint of a port; `key` as of `endpointKey`. */
export interface EndpointHealth {
  readonly key: string;
  /** Its active check; true where none is asked for. */
  readonly passes: boolean;
  /** It passes, and its last answer was good; true where no check is asked for. */
  readonly isConfirmed: boolean;
  readonly ejection: EjectionState;
}

export interface PortHealthResult {
  /** Not to be chosen while others can be; never all of them. */
  readonly excluded: readonly string[];
  /** Those whose check fails, used or not. */
  readonly failing: readonly string[];
  /**
   * Of these, whom others can replace: there is one whose last check was good and whose connects do not fail. One that is new, or about
   * to fail as well, is no reason to give anybody up: what hits all of them hits some a little sooner.
   */
  readonly replaceable: readonly string[];
  /** Left out for failed connects; at most half of all. */
  readonly ejected: readonly string[];
  /** When time alone changes the judgement, ms; Infinity: never. */
  readonly nextChangeAt: number;
}

/**
 * Which endpoints of a port are used at `now` (ms). Those that pass their checks, or all when none does: then the checks
 * prove nothing. Without the ejected ones: at most half of all, those that failed first, so that a fault which hits all of
 * them (the network of this node) ejects no more than half. And when fewer than half of all would remain ("panic"),
 * ejections are not minded: the others would break under what they all carried.
 */
export function evaluatePortHealth(endpoints: readonly EndpointHealth[], now: number): PortHealthResult {
  const ejected = ejectedOf(endpoints, now);
  const passing = endpoints.filter(({ passes }) => passes);
  const base = passing.length > 0 ? passing : endpoints;
  const without = base.filter((endpoint) => !ejected.has(endpoint));
  const isPanic = without.length * 2 < endpoints.length;
  const used = new Set(isPanic ? base : without);
  const failing = keysOf(endpoints.filter(({ passes }) => !passes));
  const left = isPanic ? [] : endpoints.filter((endpoint) => ejected.has(endpoint));
  return {
    excluded: keysOf(endpoints.filter((endpoint) => !used.has(endpoint))),
    failing,
    replaceable: passing.some(({ isConfirmed, ejection }) => isConfirmed && !isEjected(ejection, now)) ? failing : [],
    ejected: keysOf(left),
    nextChangeAt: endpoints.reduce(
      (at, { ejection }) => (isEjected(ejection, now) ? Math.min(at, ejection.ejectedUntil) : at),
      Number.POSITIVE_INFINITY,
    ),
  };
}

function ejectedOf(endpoints: readonly EndpointHealth[], now: number): ReadonlySet<EndpointHealth> {
  const candidates = endpoints.filter(({ ejection }) => isEjected(ejection, now));
  candidates.sort((a, b) => a.ejection.ejectedAt - b.ejection.ejectedAt || (a.key < b.key ? -1 : 1));
  return new Set(candidates.slice(0, Math.floor(endpoints.length / 2)));
}

function keysOf(endpoints: readonly EndpointHealth[]): readonly string[] {
  return endpoints.map(({ key }) => key);
}

// What the active checks of an endpoint have shown.
export interface CheckState {
  readonly passes: boolean;
  /** Answers in a row that speak against it. */
  readonly contraryResults: number;
  /** It passes, and its last answer was good: before the first one nobody knows. */
  readonly isConfirmed: boolean;
}

/** Kubernetes says that it is ready: it passes until it has failed often enough. */
export const INITIAL_CHECK_STATE: CheckState = { passes: true, contraryResults: 0, isConfirmed: false };

/** The state after one more answer; the same object when nothing has changed. */
export function recordCheckResult(
  state: CheckState,
  isGood: boolean,
  { healthyThreshold, unhealthyThreshold }: Pick<HealthCheckTiming, 'healthyThreshold' | 'unhealthyThreshold'>,
): CheckState {
  const { passes } = state;
  if (isGood === passes)
    return state.contraryResults === 0 && state.isConfirmed === isGood
      ? state
      : { passes, contraryResults: 0, isConfirmed: isGood };
  const contraryResults = state.contraryResults + 1;
  const needed = passes ? unhealthyThreshold : healthyThreshold;
  return contraryResults < needed
    ? { passes, contraryResults, isConfirmed: false }
    : { passes: isGood, contraryResults: 0, isConfirmed: isGood };
}

/** As in the annotation `weir.dev/health-check`. */
export function healthCheckName(check: HealthCheck): 'off' | 'tcp' | 'http' | 'https' {
  return check.kind === 'http' && check.overTls === true ? 'https' : check.kind;
}
