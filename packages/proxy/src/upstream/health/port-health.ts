import {
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
  type UnhealthyEndpoint,
} from '@weir/model/data-plane';
import type { PassiveHealthReport } from '../connect-reports.ts';
import { type WantedCheck, wantedChecksFor } from './check.ts';
import type { HealthChecker } from './health-checker.ts';

/** An endpoint of the port. */
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

/** One port of a Service: its listeners have the same endpoints, and one judgement of them. */
export class PortHealth {
  readonly listeners: Set<RouteKey> = new Set();
  /** The last one. */
  judgement: PortHealthResult = ALL_HEALTHY;
  /** Whose connections may go on only for a while, since the Service asks for that. */
  drained: readonly string[] = NO_ENDPOINTS;
  /** Of the endpoints that it had then. */
  #checks: ReadonlyMap<string, WantedCheck> = NO_CHECKS;
  /** Only of those that have ever failed. */
  readonly #ejections = new Map<string, EjectionState>();

  /** `endpoint` as of `endpointKey`. */
  recordPassiveHealth({ endpoint, succeeded, failures }: PassiveHealthReport, now: number): void {
    let state = this.#ejections.get(endpoint) ?? INITIAL_EJECTION_STATE;
    if (succeeded) state = recordConnectSuccess(state, now);
    if (failures > 0) state = recordConnectFailures(state, failures, now);
    this.#ejections.set(endpoint, state);
  }

  /** Whether a change of its route may change anything. */
  get isIdle(): boolean {
    return this.#checks.size === 0 && this.#ejections.size === 0 && this.judgement.excluded.length === 0;
  }

  /** Takes the endpoints of the moment; returns the checks that it wants of them. */
  wantedChecks(route: Route): Iterable<WantedCheck> {
    this.#checks = wantedChecksFor(route);
    return this.#checks.values();
  }

  /** At once: another one may come under the same address. */
  forgetRemoved({ endpoints }: Route): void {
    if (this.#ejections.size === 0) return;
    const present = new Set(endpoints.map(endpointKey));
    for (const key of this.#ejections.keys()) if (!present.has(key)) this.#ejections.delete(key);
  }

  /** Judges anew; what has left, or was good for long, is forgotten. */
  judge(route: Route, now: number, checks: Pick<HealthChecker, 'failureOf' | 'isProven'>): void {
    for (const [key, state] of this.#ejections) if (isEjectionHistoryOver(state, now)) this.#ejections.delete(key);
    this.forgetRemoved(route);
    if (this.isIdle) {
      this.judgement = ALL_HEALTHY;
      this.drained = NO_ENDPOINTS;
      return;
    }
    const endpoints = route.endpoints.map((endpoint): EndpointHealth => {
      const key = endpointKey(endpoint);
      const check = this.#checks.get(key);
      const passes = check === undefined || checks.failureOf(check.key) === undefined;
      const isConfirmed = check === undefined || checks.isProven(check.key);
      return { key, passes, isConfirmed, ejection: this.#ejections.get(key) ?? INITIAL_EJECTION_STATE };
    });
    this.judgement = evaluatePortHealth(endpoints, now);
    const { healthCheck } = route.settings;
    const isDrained = healthCheck.kind !== 'off' && healthCheck.drainTimeoutMs !== undefined;
    this.drained = isDrained ? this.judgement.replaceable : NO_ENDPOINTS;
  }

  /** Those that do not work, as of the last judgement. */
  unhealthy(route: Route, failureOf: (key: string) => string | undefined): UnhealthyPortEndpoint[] {
    const { failing, ejected, excluded } = this.judgement;
    const [isFailing, isEjected, isUnused] = [failing, ejected, excluded].map((keys) => new Set(keys));
    return route.endpoints.flatMap(({ address, port }): UnhealthyPortEndpoint[] => {
      const key = endpointKey({ address, port });
      const about = { endpoint: { address, port }, used: !isUnused?.has(key) };
      const check = this.#checks.get(key);
      if (isFailing?.has(key) && check !== undefined) {
        const why = `its ${healthCheckName(check.check)} check fails: ${failureOf(check.key) ?? 'no more'}`;
        return [{ ...about, state: 'failing', why }];
      }
      const { consecutiveFailures = 0 } = this.#ejections.get(key) ?? {};
      return isEjected?.has(key)
        ? [{ ...about, state: 'ejected', why: `${consecutiveFailures} connects in a row failed` }]
        : [];
    });
  }
}
