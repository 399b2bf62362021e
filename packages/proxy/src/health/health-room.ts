// The health of this node's endpoints as the main thread holds it: checks where Services ask for them, and what the
// workers tell of their connects; the workers are told which endpoints not to choose.
import { endpointKey, type Route, type RouteKey } from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import type { ConnectReport } from '../worker/connect-news.ts';
import type { Order } from '../worker/messages.ts';
import { CheckBook, type CheckCounts, type MakeCheck } from './check-book.ts';
import { DepartedBook } from './departed-book.ts';
import { makeCheck } from './make-check.ts';
import { PortHealth, type Unhealthy } from './port-health.ts';

/** A port is judged no more often: many of its endpoints may fail together, and the workers are told of all at once. */
const GAP_MS = 100;

export interface HealthRoomOptions {
  readonly routes: ReadonlyMap<RouteKey, Route>;
  readonly clock: Clock;
  readonly post: (order: Order) => void;
  readonly random?: () => number;
  /** Another way to ask endpoints: for tests. */
  readonly make?: MakeCheck;
  /** Something is told to the workers. */
  readonly onChange?: () => void;
}

export class HealthRoom {
  readonly departed: DepartedBook = new DepartedBook();
  readonly #options: HealthRoomOptions;
  readonly #checks: CheckBook;
  readonly #ports = new Map<string, PortHealth>();
  readonly #portOf = new Map<RouteKey, string>();
  /** To be judged when the gap is over. */
  readonly #stale = new Set<string>();
  /** New listeners of ports, to be told what the others know. */
  readonly #newcomers = new Set<RouteKey>();
  #gap: Timer | undefined;
  #expiry: Timer | undefined;

  constructor(options: HealthRoomOptions) {
    const { clock, random = Math.random, make = makeCheck } = options;
    this.#options = options;
    this.#checks = new CheckBook({ clock, random, make, onTurn: (ports) => this.#doubt(ports) });
  }

  /** These routes have changed, and the workers have been told. */
  settle(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#assign(key, this.#options.routes.get(key));
  }

  /** What a worker tells. Of listeners that have changed hands, or endpoints that have left, it tells nothing that counts. */
  hear(reports: readonly ConnectReport[]): void {
    const now = this.#options.clock.monotonic();
    for (const [listener, ofListener] of Map.groupBy(reports, (report) => report.listener)) {
      const name = this.#portOf.get(listener);
      const route = this.#options.routes.get(listener);
      if (name === undefined || route === undefined) continue;
      const present = new Set(route.endpoints.map(endpointKey));
      for (const report of ofListener) if (present.has(report.endpoint)) this.#ports.get(name)?.hear(report, now);
      this.#doubt([name]);
    }
  }

  /** For a worker that starts. */
  welcome(): Order[] {
    return [...this.#ports.values()].filter(({ judgement }) => judgement.unused.length > 0).map(orderFor);
  }

  /** Of each port of a Service that has some which do not work. */
  *unhealthy(): Iterable<{ readonly route: Route; readonly endpoints: readonly Unhealthy[] }> {
    for (const port of this.#ports.values()) {
      const { failing, ejected } = port.judgement;
      const route = failing.length + ejected.length === 0 ? undefined : this.#routeOf(port);
      if (route !== undefined)
        yield { route, endpoints: port.unhealthy(route, (check) => this.#checks.failureOf(check)) };
    }
  }

  /** How many endpoints of this route clients are not sent to. */
  leftOutOf(route: Route): number {
    const unused = this.#ports.get(this.#portOf.get(route.key) ?? '')?.judgement.unused ?? [];
    if (unused.length === 0) return 0;
    const keys = new Set(unused);
    return route.endpoints.filter((endpoint) => keys.has(endpointKey(endpoint))).length;
  }

  get checks(): CheckCounts {
    return this.#checks.counts;
  }

  close(): void {
    this.#gap?.cancel();
    this.#expiry?.cancel();
    this.#stale.clear();
    this.#checks.close();
  }

  #assign(key: RouteKey, route: Route | undefined): void {
    const before = this.#portOf.get(key);
    const name = route && portName(route);
    if (before !== undefined && before !== name) this.#drop(key, before);
    if (route === undefined || name === undefined) return;
    const port = this.#ports.get(name) ?? new PortHealth();
    this.#ports.set(name, port);
    if (before !== name) {
      port.listeners.add(key);
      this.#portOf.set(key, name);
      if (port.judgement.unused.length > 0) this.#newcomers.add(key);
    }
    port.forgetGone(route);
    if (!port.isIdle || route.settings.healthCheck.kind !== 'off') this.#doubt([name]);
  }

  #drop(key: RouteKey, name: string): void {
    this.#portOf.delete(key);
    this.#newcomers.delete(key);
    const port = this.#ports.get(name);
    port?.listeners.delete(key);
    if (port?.listeners.size === 0) {
      this.#ports.delete(name);
      this.#stale.delete(name);
      this.#checks.ask(name, '', []);
    }
  }

  #doubt(ports: Iterable<string>): void {
    for (const name of ports) this.#stale.add(name);
    this.#gap ??= this.#options.clock.setTimeout(() => {
      this.#gap = undefined;
      this.#judge();
    }, GAP_MS);
  }

  #judge(): void {
    const { post, onChange } = this.#options;
    let isChanged = false;
    for (const name of this.#stale) {
      const port = this.#ports.get(name);
      if (port === undefined) continue;
      const { judgement: before, drained } = port;
      this.#judgeOne(name, port);
      const isNews = !isSame(before.unused, port.judgement.unused) || !isSame(drained, port.drained);
      isChanged ||= isNews || !isSame(before.failing, port.judgement.failing);
      if (isNews || [...port.listeners].some((key) => this.#newcomers.has(key))) post(orderFor(port));
    }
    this.#stale.clear();
    this.#newcomers.clear();
    this.#expireNext();
    if (isChanged) onChange?.();
  }

  #judgeOne(name: string, port: PortHealth): void {
    const { clock } = this.#options;
    const route = this.#routeOf(port);
    if (route === undefined) return;
    const { tenant, uid } = route.service;
    this.#checks.ask(name, tenant ?? uid, port.renew(route));
    port.judge(route, clock.monotonic(), this.#checks);
  }

  #routeOf({ listeners }: PortHealth): Route | undefined {
    const [key] = listeners;
    return key === undefined ? undefined : this.#options.routes.get(key);
  }

  /** Ejections end by time alone. */
  #expireNext(): void {
    const { clock } = this.#options;
    this.#expiry?.cancel();
    let at = Number.POSITIVE_INFINITY;
    for (const { judgement } of this.#ports.values()) at = Math.min(at, judgement.changesAt);
    if (at === Number.POSITIVE_INFINITY) return;
    this.#expiry = clock.setTimeout(
      () => {
        const now = clock.monotonic();
        this.#doubt([...this.#ports].flatMap(([name, port]) => (port.judgement.changesAt <= now ? [name] : [])));
      },
      Math.max(0, at - clock.monotonic()),
    );
  }
}

/** Of one Service: another one's clients and settings must not decide about its endpoints. */
function portName({ service, listener }: Route): string {
  return `${service.uid}/${listener.protocol}/${listener.port}`;
}

function orderFor({ listeners, judgement, drained }: PortHealth): Order {
  const { unused, failing } = judgement;
  return { kind: 'health', listeners: [...listeners], unused, failing, drained };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
