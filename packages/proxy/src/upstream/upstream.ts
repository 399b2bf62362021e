import {
  type Balancer,
  type BalancerOptions,
  buildPool,
  type Client,
  canKeepBalancer,
  createBalancer,
  EMPTY_POOL,
  type EndpointPool,
  type EndpointStats,
  EXCLUDED,
  endpointKey,
  findHost,
  isTried,
  type MaglevTable,
  type Route,
  updateEndpointStats,
} from '@weir/model/data-plane';
import type { ServiceSessions } from '../relay/service-sessions.ts';
import type { RelayUpstream, Session, SessionSet } from '../relay/session.ts';
import { ticksFor } from '../relay/timeout-wheel.ts';
import type { HealthCommand } from '../worker/messages.ts';
import type { PassiveHealthReporter } from './connect-reports.ts';
import type { EndpointDrainer } from './endpoint-drainer.ts';

export interface UpstreamOptions {
  readonly service: ServiceSessions;
  readonly removedDrainer: EndpointDrainer;
  /** Of endpoints that are there and fail their checks. */
  readonly unhealthyDrainer: EndpointDrainer;
  readonly balancerOptions: BalancerOptions;
  readonly healthReporter: PassiveHealthReporter;
}

/** What the connections of one listener share: the route of the moment, and how many are open to each endpoint. */
export class Upstream implements RelayUpstream {
  readonly service: ServiceSessions;
  readonly #removedDrainer: EndpointDrainer;
  readonly #unhealthyDrainer: EndpointDrainer;
  readonly #balancerOptions: BalancerOptions;
  readonly #healthReporter: PassiveHealthReporter;
  /** Left, with connections that may go on for a while. */
  readonly #drainingByKey = new Map<string, EndpointStats>();
  /** By key: not to be chosen while others can be. Of endpoints that may have left meanwhile, too. */
  #excludedKeys: ReadonlySet<string> = NO_KEYS;
  /** By key: whose check fails, chosen or not. Likewise. */
  #failingKeys: ReadonlySet<string> = NO_KEYS;
  /** By key: whose connections are given a while. Likewise. */
  #drainingKeys: ReadonlySet<string> = NO_KEYS;
  /** Whose next success is news: the last connect failed, or others found it not working. */
  readonly #awaitingRecovery = new Set<EndpointStats>();
  #route: Route;
  #balancer: Balancer;
  #maglev: MaglevTable | undefined;
  #pool: EndpointPool = EMPTY_POOL;
  /** Those of the pool, made when first asked for: most homes never doubt an endpoint. */
  #currentEndpoints: ReadonlySet<EndpointStats> | undefined;
  /** Undefined: every name is served. */
  #hosts: ReadonlyMap<string, true> | undefined;

  constructor(
    route: Route,
    { service, removedDrainer, unhealthyDrainer, balancerOptions, healthReporter }: UpstreamOptions,
  ) {
    this.service = service;
    this.#removedDrainer = removedDrainer;
    this.#unhealthyDrainer = unhealthyDrainer;
    this.#balancerOptions = balancerOptions;
    this.#healthReporter = healthReporter;
    this.#route = route;
    this.#hosts = hostsOf(route);
    this.#balancer = createBalancer(route, balancerOptions);
    this.#rebuildPool(this.#endpointStatsForRoute());
  }

  get route(): Route {
    return this.#route;
  }

  get sessions(): SessionSet<Session> {
    return this.service.sessions;
  }

  /** Endpoints that stay keep their counts; connections to those that leave run on for the drain timeout. `now` in ticks. */
  update(route: Route, now: number): void {
    if (!canKeepBalancer(route, this.#route)) this.#balancer = createBalancer(route, this.#balancerOptions);
    if (route.settings !== this.#route.settings) this.#hosts = hostsOf(route);
    const before = this.#pool.all;
    this.#route = route;
    this.#rebuildPool(this.#endpointStatsForRoute());
    this.#drainRemoved(before, now);
  }

  /** The table of the endpoints that the route has now; undefined: it needs none any more. */
  setMaglev(slots: Uint16Array | undefined): void {
    this.#maglev = slots && { slots, endpoints: this.#pool.all };
    this.#rebuildPool(this.#pool.all);
  }

  /** The listener is no longer the Service's. */
  close(now: number): void {
    const before = this.#pool.all;
    this.#rebuildPool([]);
    this.#drainRemoved(before, now);
  }

  /** Whether a client that asks for this name by TLS is at home here; null: it names none. */
  servesHost(serverName: string | null): boolean {
    return this.#hosts === undefined || (serverName !== null && findHost(this.#hosts, serverName) === true);
  }

  /** What the main thread found of the health of the endpoints. `now` in ticks. */
  setHealth(
    { excluded, failing, draining }: Pick<HealthCommand, 'excluded' | 'failing' | 'draining'>,
    now: number,
  ): void {
    this.#excludedKeys = new Set(excluded);
    this.#failingKeys = new Set(failing);
    this.#rebuildPool(this.#pool.all);
    if (this.#drainingKeys.size + draining.length > 0) this.#updateDraining(new Set(draining), now);
  }

  onConnected(load: EndpointStats): void {
    if (this.#awaitingRecovery.size === 0 || !this.#awaitingRecovery.delete(load)) return;
    this.#healthReporter.succeeded(this.#route.key, endpointKey(load.endpoint));
  }

  onConnectFailed(load: EndpointStats): void {
    // One that has left is no longer judged, and would be remembered here for ever.
    if (load.tier === EXCLUDED && !this.#isCurrent(load)) return;
    this.#awaitingRecovery.add(load);
    this.#healthReporter.failed(this.#route.key, endpointKey(load.endpoint));
  }

  choose(client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined {
    return this.#balancer.choose(this.#pool, client, tried);
  }

  hasUntriedEndpoint(tried: readonly EndpointStats[]): boolean {
    return this.#pool.all.some((load) => load.tier !== EXCLUDED && !isTried(load, tried));
  }

  chooseExcluded(tried: readonly EndpointStats[]): EndpointStats | undefined {
    const { all } = this.#pool;
    const from = Math.floor(this.#balancerOptions.random() * all.length);
    for (let step = 0; step < all.length; step += 1) {
      const load = all[(from + step) % all.length] as EndpointStats;
      if (load.tier === EXCLUDED && !isTried(load, tried)) return load;
    }
    return undefined;
  }

  /** Sorts the endpoints anew, into those that are chosen first and the others. */
  #rebuildPool(loads: readonly EndpointStats[]): void {
    const { settings, zone } = this.#route;
    this.#markHealth(loads);
    this.#currentEndpoints = undefined;
    this.#pool = buildPool(this.#pool, loads, {
      zone: settings.preferSameZone ? zone : null,
      maglev: this.#maglev,
    });
  }

  #markHealth(loads: readonly EndpointStats[]): void {
    const othersServe = loads.some(({ isHealthy }) => isHealthy);
    if (this.#awaitingRecovery.size > 0) this.#forgetRemoved(new Set(loads));
    for (const load of loads) {
      const isHealthy = this.#excludedKeys.size === 0 || !this.#excludedKeys.has(endpointKey(load.endpoint));
      if (isHealthy === load.isHealthy) continue;
      load.isHealthy = isHealthy;
      // One that is chosen again since all fail has not recovered: spared, it would leave all to who failed last.
      if (isHealthy && othersServe && !this.#failingKeys.has(endpointKey(load.endpoint)))
        load.slowStartAt = this.#balancerOptions.now();
      if (!isHealthy) this.#awaitingRecovery.add(load);
    }
  }

  #updateDraining(keys: ReadonlySet<string>, now: number): void {
    const { healthCheck } = this.#route.settings;
    // What else the Service asks for now has been read by the main thread, too, and is judged anew.
    const forMs = healthCheck.kind === 'off' ? undefined : healthCheck.drainTimeoutMs;
    const before = this.#drainingKeys;
    this.#drainingKeys = forMs === undefined ? NO_KEYS : keys;
    for (const load of this.#pool.all) {
      const key = endpointKey(load.endpoint);
      if (!this.#drainingKeys.has(key)) this.#unhealthyDrainer.remove(load);
      else if (!before.has(key)) this.#startDraining(this.#unhealthyDrainer, load, now + ticksFor(forMs ?? 0));
    }
  }

  /** One that has left is judged no longer. */
  #forgetRemoved(loads: ReadonlySet<EndpointStats>): void {
    for (const load of this.#awaitingRecovery) {
      if (loads.has(load)) continue;
      this.#awaitingRecovery.delete(load);
      this.#healthReporter.forget(this.#route.key, endpointKey(load.endpoint));
    }
  }

  #isCurrent(load: EndpointStats): boolean {
    this.#currentEndpoints ??= new Set(this.#pool.all);
    return this.#currentEndpoints.has(load);
  }

  #endpointStatsForRoute(): readonly EndpointStats[] {
    return updateEndpointStats(this.#route.endpoints, this.#pool.all, {
      now: this.#balancerOptions.now(),
      departed: (key) => this.#reclaimDraining(key),
    });
  }

  #reclaimDraining(key: string): EndpointStats | undefined {
    const load = this.#drainingByKey.get(key);
    if (load === undefined) return undefined;
    this.#drainingByKey.delete(key);
    this.#removedDrainer.remove(load);
    // Why it was given a while went by while it was away.
    if (!this.#drainingKeys.has(key)) this.#unhealthyDrainer.remove(load);
    return load;
  }

  #drainRemoved(before: readonly EndpointStats[], now: number): void {
    const dueAt = now + ticksFor(this.#route.settings.drainTimeoutMs);
    for (const [key, load] of this.#drainingByKey) if (load.activeConnections === 0) this.#drainingByKey.delete(key);
    const stayed = new Set(this.#pool.all);
    for (const load of before) {
      if (stayed.has(load) || load.activeConnections === 0) continue;
      this.#drainingByKey.set(endpointKey(load.endpoint), load);
      this.#startDraining(this.#removedDrainer, load, dueAt);
    }
  }

  #startDraining(departures: EndpointDrainer, load: EndpointStats, dueAt: number): void {
    departures.add(load, { service: this.service.entry.uid, sessions: this.service.sessions, dueAt });
  }
}

const NO_KEYS: ReadonlySet<string> = new Set();

function hostsOf({ settings: { hosts } }: Route): ReadonlyMap<string, true> | undefined {
  if (hosts.length === 0) return undefined;
  const index = HOST_INDEXES.get(hosts) ?? new Map(hosts.map((host) => [host, true] as const));
  HOST_INDEXES.set(hosts, index);
  return index;
}

/** By the list of a Service, so that all its ports share one index: a Service can have thousands of hosts and of ports. */
const HOST_INDEXES = new WeakMap<readonly string[], ReadonlyMap<string, true>>();
