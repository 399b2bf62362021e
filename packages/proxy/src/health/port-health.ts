import {
  checkName,
  connectSucceeded,
  connectsFailed,
  type EjectionState,
  type EndpointHealth,
  endpointKey,
  isForgotten,
  judgePort,
  NEVER_FAILED,
  type PortJudgement,
  type Route,
  type RouteKey,
  type UnhealthyEndpoint,
} from '@weir/model/data-plane';
import type { ConnectReport } from '../worker/connect-news.ts';
import type { CheckBook } from './check-book.ts';
import { type WantedCheck, wantedChecksFor } from './wanted-check.ts';

/** An endpoint of the port. */
export type Unhealthy = Pick<UnhealthyEndpoint, 'endpoint' | 'state' | 'why' | 'used'>;

const ALL_USED: PortJudgement = {
  unused: [],
  failing: [],
  replaceable: [],
  ejected: [],
  changesAt: Number.POSITIVE_INFINITY,
};

const NOBODY: readonly string[] = [];
const NO_CHECKS: ReadonlyMap<string, WantedCheck> = new Map();

/** One port of a Service: its listeners have the same endpoints, and one judgement of them. */
export class PortHealth {
  readonly listeners: Set<RouteKey> = new Set();
  /** The last one. */
  judgement: PortJudgement = ALL_USED;
  /** Whose connections may go on only for a while, since the Service asks for that. */
  drained: readonly string[] = NOBODY;
  /** Of the endpoints that it had then. */
  #checks: ReadonlyMap<string, WantedCheck> = NO_CHECKS;
  /** Only of those that have ever failed. */
  readonly #ejections = new Map<string, EjectionState>();

  /** `endpoint` as of `endpointKey`. */
  hear({ endpoint, succeeded, failures }: ConnectReport, now: number): void {
    let state = this.#ejections.get(endpoint) ?? NEVER_FAILED;
    if (succeeded) state = connectSucceeded(state, now);
    if (failures > 0) state = connectsFailed(state, failures, now);
    this.#ejections.set(endpoint, state);
  }

  /** Whether a change of its route may change anything. */
  get isIdle(): boolean {
    return this.#checks.size === 0 && this.#ejections.size === 0 && this.judgement.unused.length === 0;
  }

  /** Takes the endpoints of the moment; returns the checks that it wants of them. */
  renew(route: Route): Iterable<WantedCheck> {
    this.#checks = wantedChecksFor(route);
    return this.#checks.values();
  }

  /** At once: another one may come under the same address. */
  forgetGone({ endpoints }: Route): void {
    if (this.#ejections.size === 0) return;
    const present = new Set(endpoints.map(endpointKey));
    for (const key of this.#ejections.keys()) if (!present.has(key)) this.#ejections.delete(key);
  }

  /** Judges anew; what has left, or was good for long, is forgotten. */
  judge(route: Route, now: number, checks: Pick<CheckBook, 'failureOf' | 'isProven'>): void {
    for (const [key, state] of this.#ejections) if (isForgotten(state, now)) this.#ejections.delete(key);
    this.forgetGone(route);
    if (this.isIdle) {
      this.judgement = ALL_USED;
      this.drained = NOBODY;
      return;
    }
    const endpoints = route.endpoints.map((endpoint): EndpointHealth => {
      const key = endpointKey(endpoint);
      const check = this.#checks.get(key);
      const passes = check === undefined || checks.failureOf(check.key) === undefined;
      const isProven = check === undefined || checks.isProven(check.key);
      return { key, passes, isProven, ejection: this.#ejections.get(key) ?? NEVER_FAILED };
    });
    this.judgement = judgePort(endpoints, now);
    const { healthCheck } = route.settings;
    const isDrained = healthCheck.kind !== 'off' && healthCheck.drainTimeoutMs !== undefined;
    this.drained = isDrained ? this.judgement.replaceable : NOBODY;
  }

  /** Those that do not work, as of the last judgement. */
  unhealthy(route: Route, failureOf: (key: string) => string | undefined): Unhealthy[] {
    const { failing, ejected, unused } = this.judgement;
    const [isFailing, isEjected, isUnused] = [failing, ejected, unused].map((keys) => new Set(keys));
    return route.endpoints.flatMap(({ address, port }): Unhealthy[] => {
      const key = endpointKey({ address, port });
      const about = { endpoint: { address, port }, used: !isUnused?.has(key) };
      const check = this.#checks.get(key);
      if (isFailing?.has(key) && check !== undefined) {
        const why = `its ${checkName(check.check)} check fails: ${failureOf(check.key) ?? 'no more'}`;
        return [{ ...about, state: 'failing', why }];
      }
      const { failures = 0 } = this.#ejections.get(key) ?? {};
      return isEjected?.has(key) ? [{ ...about, state: 'ejected', why: `${failures} connects in a row failed` }] : [];
    });
  }
}
