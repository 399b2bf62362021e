import {
  EJECTION_THRESHOLD_ANSWERS,
  type EjectionState,
  type EndpointHealth,
  endpointKey,
  evaluatePortHealth,
  healthCheckName,
  INITIAL_EJECTION_STATE,
  isEjectionHistoryOver,
  type PortHealthResult,
  type Route,
  type RouteKey,
  recordConnectFailures,
  recordConnectSuccess,
  recordFailedAnswers,
  recordGoodAnswer,
  type UnhealthyEndpoint,
} from '@weir/model/data-plane';
import type { PassiveHealthReport } from '../connect-reports.ts';
import { type WantedCheck, wantedChecksFor } from './check.ts';
import type { HealthChecker } from './health-checker.ts';

export type UnhealthyPortEndpoint = Pick<UnhealthyEndpoint, 'endpoint' | 'state' | 'why' | 'used'>;

const ALL_HEALTHY: PortHealthResult = {
  excluded: [],
  failing: [],
  replaceable: [],
  ejected: [],
  nextChangeAt: Number.POSITIVE_INFINITY,
};

const NO_ENDPOINTS: readonly string[] = [];
const NO_CHECKS: ReadonlyMap<string, WantedCheck> = new Map();

/** The health of one port of a Service. All listeners of the port have the same endpoints and share this object. */
export class PortHealth {
  readonly listeners: Set<RouteKey> = new Set();
  /** The result of the last evaluation. */
  evaluation: PortHealthResult = ALL_HEALTHY;
  /** Keys of unhealthy endpoints whose connections end after the drain timeout of the health check. */
  drainingEndpoints: readonly string[] = NO_ENDPOINTS;
  /** Wanted checks by endpoint key, as of the last evaluation. */
  #checks: ReadonlyMap<string, WantedCheck> = NO_CHECKS;
  /** The ejection states by endpoint key. Only endpoints with recent reports from workers have an entry. */
  readonly #ejections = new Map<string, EjectionState>();

  recordPassiveHealth({ endpoint, succeeded, failures, answers }: PassiveHealthReport, now: number): void {
    let state = this.#ejections.get(endpoint) ?? INITIAL_EJECTION_STATE;
    if (succeeded) state = recordConnectSuccess(state, now);
    if (failures > 0) state = recordConnectFailures(state, failures, now);
    if (answers === 'failed') state = recordFailedAnswers(state, now);
    else if (answers === 'good') state = recordGoodAnswer(state, now);
    this.#ejections.set(endpoint, state);
  }

  /** Whether there is nothing to evaluate: no checks, no failed connects, no excluded endpoints. */
  get isIdle(): boolean {
    return this.#checks.size === 0 && this.#ejections.size === 0 && this.evaluation.excluded.length === 0;
  }

  /** Stores and returns the checks of the route's current endpoints. */
  wantedChecks(route: Route): Iterable<WantedCheck> {
    this.#checks = wantedChecksFor(route);
    return this.#checks.values();
  }

  /** Forgets the ejections of removed endpoints at once, because a new Pod may reuse the address. */
  forgetRemoved({ endpoints }: Route): void {
    if (this.#ejections.size === 0) return;
    const present = new Set(endpoints.map(endpointKey));
    for (const key of this.#ejections.keys()) if (!present.has(key)) this.#ejections.delete(key);
  }

  /**
   * Evaluates all endpoints. Forgets the ejections of endpoints that were removed or have not failed for a long time.
   */
  evaluate(route: Route, now: number, checks: Pick<HealthChecker, 'failureOf' | 'isProven'>): void {
    for (const [key, state] of this.#ejections) if (isEjectionHistoryOver(state, now)) this.#ejections.delete(key);
    this.forgetRemoved(route);
    if (this.isIdle) {
      this.evaluation = ALL_HEALTHY;
      this.drainingEndpoints = NO_ENDPOINTS;
      return;
    }
    const endpoints = route.endpoints.map((endpoint): EndpointHealth => {
      const key = endpointKey(endpoint);
      const check = this.#checks.get(key);
      const passes = check === undefined || checks.failureOf(check.key) === undefined;
      const isConfirmed = check === undefined || checks.isProven(check.key);
      return { key, passes, isConfirmed, ejection: this.#ejections.get(key) ?? INITIAL_EJECTION_STATE };
    });
    this.evaluation = evaluatePortHealth(endpoints, now);
    const { healthCheck } = route.settings;
    const isDrained = healthCheck.kind !== 'off' && healthCheck.drainTimeoutMs !== undefined;
    this.drainingEndpoints = isDrained ? this.evaluation.replaceable : NO_ENDPOINTS;
  }

  /** Returns the endpoints that fail their check or are ejected, as of the last evaluation. */
  unhealthy(route: Route, failureOf: (key: string) => string | undefined): UnhealthyPortEndpoint[] {
    const { failing, ejected, excluded } = this.evaluation;
    const [failingKeys, ejectedKeys, excludedKeys] = [failing, ejected, excluded].map((keys) => new Set(keys));
    return route.endpoints.flatMap(({ address, port }): UnhealthyPortEndpoint[] => {
      const key = endpointKey({ address, port });
      const common = { endpoint: { address, port }, used: !excludedKeys?.has(key) };
      const check = this.#checks.get(key);
      if (failingKeys?.has(key) && check !== undefined) {
        const failure = failureOf(check.key);
        const verdict =
          failure === undefined ? 'passes again, but the proxy has not used this result yet' : `fails: ${failure}`;
        const why = `its ${healthCheckName(check.check)} check ${verdict}`;
        return [{ ...common, state: 'failing', why }];
      }
      return ejectedKeys?.has(key)
        ? [{ ...common, state: 'ejected', why: ejectionReason(this.#ejections.get(key) ?? INITIAL_EJECTION_STATE) }]
        : [];
    });
  }
}

function ejectionReason({ cause, consecutiveFailures }: EjectionState): string {
  return cause === 'connects'
    ? `${consecutiveFailures} connection attempts in a row failed`
    : `${EJECTION_THRESHOLD_ANSWERS} requests in a row were answered with 502, 503 or 504, or not at all`;
}
