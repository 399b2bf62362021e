import type { HealthCheckName, HealthCheckSettings, HealthCheckTiming } from '../settings/service-settings.ts';
import { type EjectionState, isEjected } from './ejection.ts';

/** The health of one endpoint of a port, identified by its `endpointKey`. */
export interface EndpointHealth {
  readonly key: string;
  /** Whether the active check passes; true without an active check. */
  readonly passes: boolean;
  /** Whether the endpoint passes the active check and the last result of the check was good; true without an active check. */
  readonly isConfirmed: boolean;
  readonly ejection: EjectionState;
}

export interface PortHealthResult {
  /** Keys of endpoints that are used only after all other endpoints were tried. Never contains all endpoints. */
  readonly excluded: readonly string[];
  /** Keys of endpoints whose active check fails, whether or not they are excluded. */
  readonly failing: readonly string[];
  /**
   * Keys of endpoints whose open connections may be ended, because another endpoint can replace them. Contains all failing endpoints if the
   * last check of at least one endpoint was good and that endpoint is not ejected; otherwise empty. An endpoint that is new, or whose last
   * check failed, cannot prove that only some endpoints are faulty: a fault of all endpoints shows on some endpoints first.
   */
  readonly replaceable: readonly string[];
  /** Keys of endpoints that are excluded because attempts to connect or answers failed; at most half of all endpoints. */
  readonly ejected: readonly string[];
  /** When the next ejection ends and the result may change (ms); Infinity if no endpoint is ejected. */
  readonly nextChangeAt: number;
}

/**
 * Decides at `now` (ms) which endpoints of a port are used:
 * 1. Uses the endpoints that pass their checks. If no endpoint passes, uses all endpoints, because the checks then do not show which
 *    endpoint works.
 * 2. Leaves out ejected endpoints, but at most half of all endpoints, beginning with the earliest ejection. A fault that affects all
 *    endpoints (such as a fault of this node's network) must not eject all of them.
 * 3. Ignores ejections if fewer than half of all endpoints would remain (the panic threshold of Envoy), because the remaining endpoints
 *    would collapse under the load of all endpoints.
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

/** The state of the active check of an endpoint. */
export interface CheckState {
  readonly passes: boolean;
  /** The number of consecutive results that contradict `passes`. */
  readonly contraryResults: number;
  /** Whether the check passes and its last result was good; false before the first result. */
  readonly isConfirmed: boolean;
}

/** The state of a new endpoint. The check passes until it fails often enough, because Kubernetes reports the endpoint as ready. */
export const INITIAL_CHECK_STATE: CheckState = { passes: true, contraryResults: 0, isConfirmed: false };

/** Returns the state after one more check result; the same object if nothing changed. */
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
export function healthCheckName(check: HealthCheckSettings): HealthCheckName {
  if (check.kind === 'http' && check.overTls === true) return 'https';
  return check.kind === 'tcp' && check.grpcService !== undefined ? 'grpc' : check.kind;
}
