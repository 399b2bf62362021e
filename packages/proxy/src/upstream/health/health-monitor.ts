// The health of this node's endpoints as the main thread holds it: checks where Services ask for them, and what the
// workers tell of their connects; the workers are told which endpoints not to choose.
import { endpointKey, type Route, type RouteKey } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { RoutesByPort } from '../../supervisor/table/routes-by-port.ts';
import type { WorkerCommand } from '../../worker/messages.ts';
import type { PassiveHealthReport } from '../connect-reports.ts';
import { DrainingEndpoints } from './draining-endpoints.ts';
import { type CheckCounts, HealthChecker, type RunCheck, runHealthCheck } from './health-checker.ts';
import { PortHealth, type UnhealthyPortEndpoint } from './port-health.ts';

/** A port is judged no more often: many of its endpoints may fail together, and the workers are told of all at once. */
const MIN_JUDGE_INTERVAL_MS = 100;

export interface HealthMonitorOptions {
  readonly routes: ReadonlyMap<RouteKey, Route>;
  readonly clock: Clock;
  readonly post: (order: WorkerCommand) => void;
  readonly random?: () => number;
  /** Another way to ask endpoints: for tests. */
  readonly runCheck?: RunCheck;
  /** Something is told to the workers. */
  readonly onChange?: () => void;
}

export class HealthMonitor {
  readonly draining: DrainingEndpoints = new DrainingEndpoints();
  readonly #options: HealthMonitorOptions;
  readonly #checker: HealthChecker;
  /** Each Service has its own view: the clients and settings of another Service must not decide about its endpoints. */
  readonly #ports = new RoutesByPort(() => new PortHealth());
  /** To be judged when the gap is over. */
  readonly #stale = new Set<string>();
  /** New listeners of ports, to be told what the others know. */
  readonly #newListeners = new Set<RouteKey>();
  #judgeTimer: Timer | undefined;
  #ejectionTimer: Timer | undefined;

  constructor(options: HealthMonitorOptions) {
    const { clock, random = Math.random, runCheck = runHealthCheck } = options;
    this.#options = options;
    this.#checker = new HealthChecker({
      clock,
      random,
      runCheck,
      onResultChange: (ports) => this.#scheduleJudgement(ports),
    });
  }

  /** These routes have changed, and the workers have been told. */
  onRoutesChanged(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#assign(key, this.#options.routes.get(key));
  }

  /** What a worker tells. Of listeners that have changed hands, or endpoints that have left, it tells nothing that counts. */
  recordPassiveHealth(reports: readonly PassiveHealthReport[]): void {
    const now = this.#options.clock.monotonic();
    for (const [listener, ofListener] of Map.groupBy(reports, (report) => report.listener)) {
      const name = this.#ports.nameOf(listener);
      const route = this.#options.routes.get(listener);
      if (name === undefined || route === undefined) continue;
      const present = new Set(route.endpoints.map(endpointKey));
      for (const report of ofListener)
        if (present.has(report.endpoint)) this.#ports.portOf(listener)?.recordPassiveHealth(report, now);
      this.#scheduleJudgement([name]);
    }
  }

  /** For a worker that starts. */
  commandsForNewWorker(): WorkerCommand[] {
    return [...this.#ports.ports.values()].filter(({ judgement }) => judgement.excluded.length > 0).map(commandFor);
  }

  /** Of each port of a Service that has some which do not work. */
  *unhealthy(): Iterable<{ readonly route: Route; readonly endpoints: readonly UnhealthyPortEndpoint[] }> {
    for (const port of this.#ports.ports.values()) {
      const { failing, ejected } = port.judgement;
      const route = failing.length + ejected.length === 0 ? undefined : this.#routeOf(port);
      if (route !== undefined)
        yield { route, endpoints: port.unhealthy(route, (check) => this.#checker.failureOf(check)) };
    }
  }

  /** How many endpoints of this route clients are not sent to. */
  countEjected(route: Route): number {
    const unused = this.#ports.portOf(route.key)?.judgement.excluded ?? [];
    if (unused.length === 0) return 0;
    const keys = new Set(unused);
    return route.endpoints.filter((endpoint) => keys.has(endpointKey(endpoint))).length;
  }

  get checkCounts(): CheckCounts {
    return this.#checker.counts;
  }

  close(): void {
    this.#judgeTimer?.cancel();
    this.#ejectionTimer?.cancel();
    this.#stale.clear();
    this.#checker.close();
  }

  #assign(key: RouteKey, route: Route | undefined): void {
    const { name, isNew, left } = this.#ports.assign(key, route);
    if (left !== undefined) this.#leave(key, left);
    const port = this.#ports.portOf(key);
    if (route === undefined || name === undefined || port === undefined) return;
    if (isNew && port.judgement.excluded.length > 0) this.#newListeners.add(key);
    port.forgetRemoved(route);
    if (!port.isIdle || route.settings.healthCheck.kind !== 'off') this.#scheduleJudgement([name]);
  }

  #leave(key: RouteKey, name: string): void {
    this.#newListeners.delete(key);
    if (this.#ports.ports.has(name)) return;
    this.#stale.delete(name);
    this.#checker.subscribe(name, '', []);
  }

  #scheduleJudgement(ports: Iterable<string>): void {
    for (const name of ports) this.#stale.add(name);
    this.#judgeTimer ??= this.#options.clock.setTimeout(() => {
      this.#judgeTimer = undefined;
      this.#judge();
    }, MIN_JUDGE_INTERVAL_MS);
  }

  #judge(): void {
    const { post, onChange } = this.#options;
    let isChanged = false;
    for (const name of this.#stale) {
      const port = this.#ports.ports.get(name);
      if (port === undefined) continue;
      const { judgement: before, drained } = port;
      this.#judgeOne(name, port);
      const isNews = !isSame(before.excluded, port.judgement.excluded) || !isSame(drained, port.drained);
      isChanged ||= isNews || !isSame(before.failing, port.judgement.failing);
      if (isNews || [...port.listeners].some((key) => this.#newListeners.has(key))) post(commandFor(port));
    }
    this.#stale.clear();
    this.#newListeners.clear();
    this.#scheduleEjectionEnd();
    if (isChanged) onChange?.();
  }

  #judgeOne(name: string, port: PortHealth): void {
    const { clock } = this.#options;
    const route = this.#routeOf(port);
    if (route === undefined) return;
    const { tenant, uid } = route.service;
    this.#checker.subscribe(name, tenant ?? uid, port.wantedChecks(route));
    port.judge(route, clock.monotonic(), this.#checker);
  }

  #routeOf({ listeners }: PortHealth): Route | undefined {
    const [key] = listeners;
    return key === undefined ? undefined : this.#options.routes.get(key);
  }

  /** Ejections end by time alone. */
  #scheduleEjectionEnd(): void {
    const { clock } = this.#options;
    this.#ejectionTimer?.cancel();
    let at = Number.POSITIVE_INFINITY;
    for (const { judgement } of this.#ports.ports.values()) at = Math.min(at, judgement.nextChangeAt);
    if (at === Number.POSITIVE_INFINITY) return;
    this.#ejectionTimer = clock.setTimeout(
      () => {
        const now = clock.monotonic();
        this.#scheduleJudgement(
          [...this.#ports.ports].flatMap(([name, port]) => (port.judgement.nextChangeAt <= now ? [name] : [])),
        );
      },
      Math.max(0, at - clock.monotonic()),
    );
  }
}

function commandFor({ listeners, judgement, drained: draining }: PortHealth): WorkerCommand {
  const { excluded, failing } = judgement;
  return { kind: 'health', listeners: [...listeners], excluded, failing, draining };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
