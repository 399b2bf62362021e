// Evaluates the health of this node's endpoints on the main thread, from health checks and from the workers' connection
// attempts. Sends the workers the list of endpoints that are excluded from balancing.
import { endpointKey, type Route, type RouteKey } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import { RoutesByPort } from '../../supervisor/table/node-table.ts';
import type { WorkerCommand } from '../../worker/messages.ts';
import type { PassiveHealthReport } from '../connect-reports.ts';
import { DrainingEndpoints } from './draining-endpoints.ts';
import { type CheckCounts, HealthChecker, type RunCheck, runHealthCheck } from './health-checker.ts';
import { PortHealth, type UnhealthyPortEndpoint } from './port-health.ts';

/**
 * The minimum time between two evaluations. Endpoints often fail together, and after this time one evaluation and one
 * command to the workers cover all of them.
 */
const MIN_EVALUATION_INTERVAL_MS = 100;

export interface HealthMonitorOptions {
  readonly routes: ReadonlyMap<RouteKey, Route>;
  readonly clock: Clock;
  readonly post: (command: WorkerCommand) => void;
  readonly random?: () => number;
  /** Replaces the real health checks in tests. */
  readonly runCheck?: RunCheck;
  /** Called when the health of an endpoint has changed. */
  readonly onChange?: () => void;
}

export class HealthMonitor {
  readonly draining: DrainingEndpoints = new DrainingEndpoints();
  readonly #options: HealthMonitorOptions;
  readonly #checker: HealthChecker;
  /**
   * The health of each port of a Service. If two Services have the same endpoint, the endpoint is evaluated separately
   * for each, because the clients and settings of one Service must not decide about the endpoints of another Service.
   */
  readonly #ports = new RoutesByPort(() => new PortHealth());
  /** The names of the ports to be evaluated when `MIN_EVALUATION_INTERVAL_MS` is over. */
  readonly #stale = new Set<string>();
  /**
   * New listeners of ports with excluded endpoints. After the next evaluation the workers get the health command of
   * such a port even if no endpoint has changed, because the command now includes the new listener.
   */
  readonly #newListeners = new Set<RouteKey>();
  #evaluationTimer: Timer | undefined;
  #ejectionTimer: Timer | undefined;

  constructor(options: HealthMonitorOptions) {
    const { clock, random = Math.random, runCheck = runHealthCheck } = options;
    this.#options = options;
    this.#checker = new HealthChecker({
      clock,
      random,
      runCheck,
      onResultChange: (ports) => this.#scheduleEvaluation(ports),
    });
  }

  /** Must be called after the routes with these keys changed and the route commands for the workers are queued. */
  onRoutesChanged(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#assign(key, this.#options.routes.get(key));
  }

  /** Records the reports of a worker. Ignores listeners and endpoints that are no longer in the table. */
  recordPassiveHealth(reports: readonly PassiveHealthReport[]): void {
    const now = this.#options.clock.monotonic();
    for (const [listener, ofListener] of Map.groupBy(reports, (report) => report.listener)) {
      const name = this.#ports.nameOf(listener);
      const route = this.#options.routes.get(listener);
      if (name === undefined || route === undefined) continue;
      const present = new Set(route.endpoints.map(endpointKey));
      for (const report of ofListener)
        if (present.has(report.endpoint)) this.#ports.portOf(listener)?.recordPassiveHealth(report, now);
      this.#scheduleEvaluation([name]);
    }
  }

  /** Returns the health commands for a worker that is starting. */
  commandsForNewWorker(): WorkerCommand[] {
    return [...this.#ports.ports.values()].filter(({ evaluation }) => evaluation.excluded.length > 0).map(commandFor);
  }

  /** Yields each port with endpoints that fail their check or are ejected. */
  *unhealthy(): Iterable<{ readonly route: Route; readonly endpoints: readonly UnhealthyPortEndpoint[] }> {
    for (const port of this.#ports.ports.values()) {
      const { failing, ejected } = port.evaluation;
      const route = failing.length + ejected.length === 0 ? undefined : this.#routeOf(port);
      if (route !== undefined)
        yield { route, endpoints: port.unhealthy(route, (check) => this.#checker.failureOf(check)) };
    }
  }

  /** Returns the number of endpoints of this route that are excluded from balancing. */
  countEjected(route: Route): number {
    const excluded = this.#ports.portOf(route.key)?.evaluation.excluded ?? [];
    if (excluded.length === 0) return 0;
    const keys = new Set(excluded);
    return route.endpoints.filter((endpoint) => keys.has(endpointKey(endpoint))).length;
  }

  get checkCounts(): CheckCounts {
    return this.#checker.counts;
  }

  close(): void {
    this.#evaluationTimer?.cancel();
    this.#ejectionTimer?.cancel();
    this.#stale.clear();
    this.#checker.close();
  }

  #assign(key: RouteKey, route: Route | undefined): void {
    const { name, isNew, left } = this.#ports.assign(key, route);
    if (left !== undefined) this.#leave(key, left);
    const port = this.#ports.portOf(key);
    if (route === undefined || name === undefined || port === undefined) return;
    if (isNew && port.evaluation.excluded.length > 0) this.#newListeners.add(key);
    port.forgetRemoved(route);
    if (!port.isIdle || route.settings.healthCheck.kind !== 'off') this.#scheduleEvaluation([name]);
  }

  #leave(key: RouteKey, name: string): void {
    this.#newListeners.delete(key);
    if (this.#ports.ports.has(name)) return;
    this.#stale.delete(name);
    this.#checker.subscribe(name, '', []);
  }

  #scheduleEvaluation(ports: Iterable<string>): void {
    for (const name of ports) this.#stale.add(name);
    this.#evaluationTimer ??= this.#options.clock.setTimeout(() => {
      this.#evaluationTimer = undefined;
      this.#evaluateStalePorts();
    }, MIN_EVALUATION_INTERVAL_MS);
  }

  #evaluateStalePorts(): void {
    const { post, onChange } = this.#options;
    let isChanged = false;
    for (const name of this.#stale) {
      const port = this.#ports.ports.get(name);
      if (port === undefined) continue;
      const { evaluation: before, drainingEndpoints } = port;
      this.#evaluatePort(name, port);
      const hasNewCommand =
        !isSame(before.excluded, port.evaluation.excluded) || !isSame(drainingEndpoints, port.drainingEndpoints);
      isChanged ||= hasNewCommand || !isSame(before.failing, port.evaluation.failing);
      if (hasNewCommand || [...port.listeners].some((key) => this.#newListeners.has(key))) post(commandFor(port));
    }
    this.#stale.clear();
    this.#newListeners.clear();
    this.#scheduleEjectionEnd();
    if (isChanged) onChange?.();
  }

  #evaluatePort(name: string, port: PortHealth): void {
    const { clock } = this.#options;
    const route = this.#routeOf(port);
    if (route === undefined) return;
    const { tenant, uid } = route.service;
    this.#checker.subscribe(name, tenant ?? uid, port.wantedChecks(route));
    port.evaluate(route, clock.monotonic(), this.#checker);
  }

  #routeOf({ listeners }: PortHealth): Route | undefined {
    const [key] = listeners;
    return key === undefined ? undefined : this.#options.routes.get(key);
  }

  /** Schedules an evaluation for the end of the next ejection, because no report or check result would trigger one. */
  #scheduleEjectionEnd(): void {
    const { clock } = this.#options;
    this.#ejectionTimer?.cancel();
    let endsAt = Number.POSITIVE_INFINITY;
    for (const { evaluation } of this.#ports.ports.values()) endsAt = Math.min(endsAt, evaluation.nextChangeAt);
    if (endsAt === Number.POSITIVE_INFINITY) return;
    this.#ejectionTimer = clock.setTimeout(
      () => {
        const now = clock.monotonic();
        this.#scheduleEvaluation(
          [...this.#ports.ports].flatMap(([name, port]) => (port.evaluation.nextChangeAt <= now ? [name] : [])),
        );
      },
      Math.max(0, endsAt - clock.monotonic()),
    );
  }
}

function commandFor({ listeners, evaluation, drainingEndpoints: draining }: PortHealth): WorkerCommand {
  const { excluded, failing } = evaluation;
  return { kind: 'health', listeners: [...listeners], excluded, failing, draining };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
