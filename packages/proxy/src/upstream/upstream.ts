import {
  type Balancer,
  type BalancerOptions,
  buildPool,
  type Client,
  canKeepBalancer,
  createBalancer,
  EJECTION_THRESHOLD_ANSWERS,
  EMPTY_POOL,
  type EndpointPool,
  type EndpointStats,
  EXCLUDED,
  endpointKey,
  findHost,
  type MaglevTable,
  type Route,
  untriedFrom,
  updateEndpointStats,
} from '@weir/model/data-plane';
import { StickyCookie } from '../http/sticky-cookie.ts';
import type { ServiceSessions } from '../relay/service-sessions.ts';
import { ticksFor } from '../relay/timeout-wheel.ts';
import type { HealthCommand } from '../worker/messages.ts';
import type { PassiveHealthReporter } from './connect-reports.ts';
import type { EndpointDrainer } from './endpoint-drainer.ts';

/**
 * The maximum number of endpoints that a TCP session, or a UDP flow that no endpoint has answered, tries. Without this
 * limit each client of a Service whose endpoints all fail would open one connection after the other, and a forged
 * datagram would reach every endpoint.
 */
export const MAX_ENDPOINT_ATTEMPTS = 4;

export interface UpstreamOptions {
  readonly service: ServiceSessions;
  readonly removedDrainer: EndpointDrainer;
  /** Drains endpoints that fail their checks. `removedDrainer` drains endpoints that were removed from the route. */
  readonly unhealthyDrainer: EndpointDrainer;
  readonly balancerOptions: BalancerOptions;
  readonly healthReporter: PassiveHealthReporter;
  /** The key of sticky cookies, 32 bytes. */
  readonly stickyKey: Uint8Array;
}

/**
 * The state that the sessions of one route in this worker share: the route, its balancer, and the stats of its
 * endpoints.
 */
export class Upstream {
  readonly service: ServiceSessions;
  readonly #removedDrainer: EndpointDrainer;
  readonly #unhealthyDrainer: EndpointDrainer;
  readonly #balancerOptions: BalancerOptions;
  readonly #healthReporter: PassiveHealthReporter;
  readonly #stickyKey: Uint8Array;
  /** Endpoints that were removed from the route but still have open connections, by endpoint key. */
  readonly #drainingByKey = new Map<string, EndpointStats>();
  /**
   * Keys of endpoints that are chosen only if no other endpoint is left. This set, `#failingKeys` and `#drainingKeys`
   * may contain keys of removed endpoints.
   */
  #excludedKeys: ReadonlySet<string> = NO_KEYS;
  /** Keys of endpoints whose check fails, whether they are excluded or not. */
  #failingKeys: ReadonlySet<string> = NO_KEYS;
  /** Keys of unhealthy endpoints whose connections end after the drain timeout for failed checks. */
  #drainingKeys: ReadonlySet<string> = NO_KEYS;
  /**
   * Endpoints whose next successful connection is reported to the main thread, because the last attempt failed or the
   * endpoint was excluded.
   */
  readonly #awaitingRecovery = new Set<EndpointStats>();
  #route: Route;
  #balancer: Balancer;
  #maglev: MaglevTable | undefined;
  #pool: EndpointPool = EMPTY_POOL;
  /**
   * The endpoints of `#pool` as a set. Created on first use, because most upstreams never have a failed connection
   * attempt.
   */
  #currentEndpoints: ReadonlySet<EndpointStats> | undefined;
  #stickyCookie: StickyCookie | undefined;
  /** The hosts that the Service serves, or undefined if it serves every host. */
  #hosts: ReadonlyMap<string, true> | undefined;

  constructor(
    route: Route,
    { service, removedDrainer, unhealthyDrainer, balancerOptions, healthReporter, stickyKey }: UpstreamOptions,
  ) {
    this.service = service;
    this.#removedDrainer = removedDrainer;
    this.#unhealthyDrainer = unhealthyDrainer;
    this.#balancerOptions = balancerOptions;
    this.#healthReporter = healthReporter;
    this.#stickyKey = stickyKey;
    this.#route = route;
    this.#hosts = hostsOf(route);
    this.#balancer = createBalancer(route, balancerOptions);
    this.#rebuildPool(this.#endpointStatsForRoute());
  }

  get route(): Route {
    return this.#route;
  }

  /** The sticky cookie of the Service, which names the current endpoints. Undefined if the Service wants none. */
  get stickyCookie(): StickyCookie | undefined {
    const { settings, service } = this.#route;
    const { stickyCookie: name } = settings;
    if (name === undefined) return undefined;
    if (this.#stickyCookie?.nameText !== name)
      this.#stickyCookie = new StickyCookie(name, { key: this.#stickyKey, service: service.uid });
    this.#stickyCookie.setEndpoints(this.#pool.all);
    return this.#stickyCookie;
  }

  /**
   * Replaces the route. Endpoints that remain in the route keep their stats. Sessions of removed endpoints end after
   * the drain timeout. `now` is in ticks.
   */
  update(route: Route, now: number): void {
    if (!canKeepBalancer(route, this.#route)) this.#balancer = createBalancer(route, this.#balancerOptions);
    if (route.settings !== this.#route.settings) this.#hosts = hostsOf(route);
    const before = this.#pool.all;
    this.#route = route;
    this.#rebuildPool(this.#endpointStatsForRoute());
    this.#drainRemoved(before, now);
  }

  /** Sets the Maglev table for the current endpoints. `slots` is undefined if the algorithm needs no table. */
  setMaglev(slots: Uint16Array | undefined): void {
    this.#maglev = slots && { slots, endpoints: this.#pool.all };
    this.#rebuildPool(this.#pool.all);
  }

  /**
   * Drains all endpoints. Must be called when the route was removed or its listener was given to another Service. `now`
   * is in ticks.
   */
  close(now: number): void {
    const before = this.#pool.all;
    this.#rebuildPool([]);
    this.#drainRemoved(before, now);
  }

  /** Reports whether the Service serves this TLS server name. `serverName` is null if the client sent none. */
  servesHost(serverName: string | null): boolean {
    return this.#hosts === undefined || (serverName !== null && findHost(this.#hosts, serverName) === true);
  }

  /** Applies the main thread's evaluation of the endpoints. `now` is in ticks. */
  setHealth(
    { excluded, failing, draining }: Pick<HealthCommand, 'excluded' | 'failing' | 'draining'>,
    now: number,
  ): void {
    this.#excludedKeys = new Set(excluded);
    this.#failingKeys = new Set(failing);
    this.#rebuildPool(this.#pool.all);
    if (this.#drainingKeys.size + draining.length > 0) this.#updateDraining(new Set(draining), now);
  }

  onConnected(stats: EndpointStats): void {
    if (this.#awaitingRecovery.size === 0 || !this.#awaitingRecovery.delete(stats)) return;
    this.#healthReporter.succeeded(this.#route.key, endpointKey(stats.endpoint));
  }

  /** Must be called when the endpoint refused the connection or did not answer in time. */
  onConnectFailed(stats: EndpointStats): void {
    // A removed endpoint is ignored, because it would never leave `#awaitingRecovery`.
    if (stats.tier === EXCLUDED && !this.#isCurrent(stats)) return;
    this.#awaitingRecovery.add(stats);
    this.#healthReporter.failed(this.#route.key, endpointKey(stats.endpoint));
  }

  /** Must be called for each HTTP request that the endpoint has answered or failed to answer. */
  onAnswer(stats: EndpointStats, hasFailed: boolean): void {
    if (hasFailed) this.#onFailedAnswer(stats);
    else if (stats.failedAnswers > 0) this.#onGoodAnswer(stats);
  }

  /** Returns an endpoint that is neither excluded nor in `tried`, or undefined if there is none. */
  choose(client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined {
    return this.#balancer.choose(this.#pool, client, tried);
  }

  /** Reports whether `choose` would return an endpoint. Does not change the state of the balancer. */
  hasUntriedEndpoint(tried: readonly EndpointStats[]): boolean {
    const { preferred, fallback } = this.#pool;
    return (untriedFrom(preferred, 0, tried) ?? untriedFrom(fallback, 0, tried)) !== undefined;
  }

  /** Returns an excluded endpoint that is not in `tried`, or undefined if there is none. */
  chooseExcluded(tried: readonly EndpointStats[]): EndpointStats | undefined {
    const { excluded } = this.#pool;
    return untriedFrom(excluded, Math.floor(this.#balancerOptions.random() * excluded.length), tried);
  }

  #onFailedAnswer(stats: EndpointStats): void {
    stats.failedAnswers += 1;
    if (stats.failedAnswers < EJECTION_THRESHOLD_ANSWERS || (stats.tier === EXCLUDED && !this.#isCurrent(stats)))
      return;
    this.#healthReporter.answered(this.#route.key, endpointKey(stats.endpoint), 'failed');
  }

  #onGoodAnswer(stats: EndpointStats): void {
    if (stats.failedAnswers >= EJECTION_THRESHOLD_ANSWERS && (stats.tier !== EXCLUDED || this.#isCurrent(stats)))
      this.#healthReporter.answered(this.#route.key, endpointKey(stats.endpoint), 'good');
    stats.failedAnswers = 0;
  }

  #rebuildPool(endpoints: readonly EndpointStats[]): void {
    const { settings, zone } = this.#route;
    this.#markHealth(endpoints);
    this.#currentEndpoints = undefined;
    this.#pool = buildPool(this.#pool, endpoints, {
      zone: settings.preferSameZone ? zone : null,
      maglev: this.#maglev,
    });
  }

  #markHealth(endpoints: readonly EndpointStats[]): void {
    const anyHealthy = endpoints.some(({ isHealthy }) => isHealthy);
    if (this.#awaitingRecovery.size > 0) this.#forgetRemoved(new Set(endpoints));
    for (const stats of endpoints) {
      const isHealthy = this.#excludedKeys.size === 0 || !this.#excludedKeys.has(endpointKey(stats.endpoint));
      if (isHealthy === stats.isHealthy) continue;
      stats.isHealthy = isHealthy;
      // Slow start only applies to an endpoint that has recovered. If an endpoint is used again only because all
      // endpoints fail, a slow start would shift the endpoint's share to the endpoint that failed last.
      if (isHealthy && anyHealthy && !this.#failingKeys.has(endpointKey(stats.endpoint)))
        stats.slowStartAt = this.#balancerOptions.now();
      if (!isHealthy) this.#awaitingRecovery.add(stats);
    }
  }

  #updateDraining(keys: ReadonlySet<string>, now: number): void {
    const { healthCheck } = this.#route.settings;
    // `keys` come from a HealthCommand that may be older than the settings of the route, so health checks may be off by
    // now. Then nothing drains until the main thread sends a HealthCommand for the newer settings.
    const drainTimeoutMs = healthCheck.kind === 'off' ? undefined : healthCheck.drainTimeoutMs;
    const before = this.#drainingKeys;
    this.#drainingKeys = drainTimeoutMs === undefined ? NO_KEYS : keys;
    for (const stats of this.#pool.all) {
      const key = endpointKey(stats.endpoint);
      if (!this.#drainingKeys.has(key)) this.#unhealthyDrainer.remove(stats);
      else if (!before.has(key))
        this.#startDraining(this.#unhealthyDrainer, stats, now + ticksFor(drainTimeoutMs ?? 0));
    }
  }

  #forgetRemoved(endpoints: ReadonlySet<EndpointStats>): void {
    for (const stats of this.#awaitingRecovery) {
      if (endpoints.has(stats)) continue;
      this.#awaitingRecovery.delete(stats);
      this.#healthReporter.forget(this.#route.key, endpointKey(stats.endpoint));
    }
  }

  #isCurrent(stats: EndpointStats): boolean {
    this.#currentEndpoints ??= new Set(this.#pool.all);
    return this.#currentEndpoints.has(stats);
  }

  #endpointStatsForRoute(): readonly EndpointStats[] {
    return updateEndpointStats(this.#route.endpoints, this.#pool.all, {
      now: this.#balancerOptions.now(),
      departed: (key) => this.#reclaimDraining(key),
    });
  }

  #reclaimDraining(key: string): EndpointStats | undefined {
    const stats = this.#drainingByKey.get(key);
    if (stats === undefined) return undefined;
    this.#drainingByKey.delete(key);
    this.#removedDrainer.remove(stats);
    // If the endpoint was evaluated as healthy while it was removed, `#updateDraining` could not stop its drain.
    if (!this.#drainingKeys.has(key)) this.#unhealthyDrainer.remove(stats);
    return stats;
  }

  #drainRemoved(before: readonly EndpointStats[], now: number): void {
    const dueAt = now + ticksFor(this.#route.settings.drainTimeoutMs);
    for (const [key, stats] of this.#drainingByKey) if (stats.activeConnections === 0) this.#drainingByKey.delete(key);
    const stayed = new Set(this.#pool.all);
    for (const stats of before) {
      if (stayed.has(stats) || stats.activeConnections === 0) continue;
      this.#drainingByKey.set(endpointKey(stats.endpoint), stats);
      this.#startDraining(this.#removedDrainer, stats, dueAt);
    }
  }

  #startDraining(drainer: EndpointDrainer, stats: EndpointStats, dueAt: number): void {
    drainer.add(stats, { service: this.service.entry.uid, sessions: this.service.sessions, dueAt });
  }
}

const NO_KEYS: ReadonlySet<string> = new Set();

function hostsOf({ settings: { hosts } }: Route): ReadonlyMap<string, true> | undefined {
  if (hosts.length === 0) return undefined;
  const index = HOST_INDEXES.get(hosts) ?? new Map(hosts.map((host) => [host, true] as const));
  HOST_INDEXES.set(hosts, index);
  return index;
}

/**
 * Indexes of hosts, by a Service's list of hosts, so that all ports of the Service share one index. A Service can have
 * thousands of hosts and thousands of ports.
 */
const HOST_INDEXES = new WeakMap<readonly string[], ReadonlyMap<string, true>>();
