import type { HealthCheckSettings, HealthCheckTiming } from '../settings/service-settings.ts';
import { type EjectionState, isEjected } from './ejection.ts';

/** The health of one endpoint of a port, identified by its `endpointKey`. */
export interface EndpointHealth {
  readonly key: string;
  /** The active check passes; true without an active check. */
  readonly passes: boolean;
  /** The active check passes and its last result was good; true without an active check. */
  readonly isConfirmed: boolean;
  readonly ejection: EjectionState;
}

export interface PortHealthResult {
  /** Endpoints that balancers choose only if all other endpoints were tried; never all endpoints. */
  readonly excluded: readonly string[];
  /** Endpoints whose active check fails, whether or not they are excluded. */
  readonly failing: readonly string[];
  /**
   * Endpoints whose connections may be moved. All failing endpoints if at least one endpoint has a good last check and working
   * connects, otherwise none. An endpoint that is new or about to fail as well proves nothing, because a fault of all endpoints
   * shows on some of them first.
   */
  readonly replaceable: readonly string[];
  /** Endpoints excluded because connects failed; at most half of all endpoints. */
  readonly ejected: readonly string[];
  /** When time alone changes the result (ms); Infinity if never. */
  readonly nextChangeAt: number;
}

/**
 * Decides at `now` (ms) which endpoints of a port are used:
 * 1. The endpoints that pass their checks, or all endpoints if none passes, since the checks prove nothing then.
 * 2. Ejected endpoints are left out, but at most half of all endpoints, those that failed first. A fault that affects all of them
 *    (such as the network of this node) must not eject all.
 * 3. If fewer than half of all endpoints would remain, ejections are ignored (the panic threshold of Envoy): the rest would
 *    collapse under the load of all.
 */
export function evaluatePortHealth(endpoints: readonly EndpointHealth[], now: number): PortHealthResult {
  const ejected = ejectedOf(endpoints, now);
  const passing = endpoints.filter(({ passes }) => passes);
  const base = passing.length > 0 ? passing : endpoints;
  const remaining = base.filter((endpoint) => !ejected.has(endpoint));
  const isPanic = remaining.length * 2 < endpoints.length;
  const used = new Set(isPanic ? base : remaining);
  const failing = keysOf(endpoints.filter(({ passes }) => !passes));
  const ejectedNow = isPanic ? [] : endpoints.filter((endpoint) => ejected.has(endpoint));
  return {
    excluded: keysOf(endpoints.filter((endpoint) => !used.has(endpoint))),
    failing,
    replaceable: passing.some(({ isConfirmed, ejection }) => isConfirmed && !isEjected(ejection, now)) ? failing : [],
    ejected: keysOf(ejectedNow),
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

/** The state of an endpoint's active check. */
export interface CheckState {
  readonly passes: boolean;
  /** Consecutive results that contradict `passes`. */
  readonly contraryResults: number;
  /** The check passes and its last result was good; false before the first result. */
  readonly isConfirmed: boolean;
}

/** The state of a new endpoint: it passes until it fails often enough, because Kubernetes reports it as ready. */
export const INITIAL_CHECK_STATE: CheckState = { passes: true, contraryResults: 0, isConfirmed: false };

/** The state after one more check result; the same object if nothing changed. */
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

/** Returns the value of the annotation `weir.dev/health-check` that asks for this check. */
export function healthCheckName(check: HealthCheckSettings): 'off' | 'tcp' | 'http' | 'https' {
  return check.kind === 'http' && check.overTls === true ? 'https' : check.kind;
}
