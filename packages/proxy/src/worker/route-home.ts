import {
  arrangePool,
  type Balancer,
  type BalancerTools,
  type Client,
  compileHosts,
  createBalancer,
  EMPTY_POOL,
  type EndpointLoad,
  type EndpointPool,
  endpointKey,
  type HostTable,
  isBalancedAlike,
  isTried,
  type MaglevTable,
  type Route,
  renewLoads,
  UNUSED,
} from '@weir/model/data-plane';
import type { ConnectionHome } from '../relay/connection-home.ts';
import type { Member } from '../relay/member.ts';
import type { Members } from '../relay/members.ts';
import { ticksFor } from '../relay/ticks.ts';
import type { ConnectNews } from './connect-news.ts';
import type { Departures } from './departures.ts';
import type { HealthOrder } from './messages.ts';
import type { ServiceGroup } from './service-group.ts';

export interface RouteHomeOptions {
  readonly group: ServiceGroup;
  readonly departures: Departures;
  /** Of endpoints that are there and fail their checks. */
  readonly failing: Departures;
  readonly tools: BalancerTools;
  readonly news: ConnectNews;
}

/** What the connections of one listener share: the route of the moment, and how many are open to each endpoint. */
export class RouteHome implements ConnectionHome {
  readonly group: ServiceGroup;
  readonly #departures: Departures;
  readonly #failing: Departures;
  readonly #tools: BalancerTools;
  readonly #news: ConnectNews;
  /** Left, with connections that may go on for a while. */
  readonly #departed = new Map<string, EndpointLoad>();
  /** By key: not to be chosen while others can be. Of endpoints that may have left meanwhile, too. */
  #unused: ReadonlySet<string> = NOBODY;
  /** By key: whose check fails, chosen or not. Likewise. */
  #failed: ReadonlySet<string> = NOBODY;
  /** By key: whose connections are given a while. Likewise. */
  #drained: ReadonlySet<string> = NOBODY;
  /** Whose next success is news: the last connect failed, or others found it not working. */
  readonly #doubted = new Set<EndpointLoad>();
  #route: Route;
  #balancer: Balancer;
  #maglev: MaglevTable | undefined;
  #pool: EndpointPool = EMPTY_POOL;
  /** Those of the pool, made when first asked for: most homes never doubt an endpoint. */
  #present: ReadonlySet<EndpointLoad> | undefined;
  /** Undefined: every name is served. */
  #hosts: HostTable<true> | undefined;

  constructor(route: Route, { group, departures, failing, tools, news }: RouteHomeOptions) {
    this.group = group;
    this.#departures = departures;
    this.#failing = failing;
    this.#tools = tools;
    this.#news = news;
    this.#route = route;
    this.#hosts = hostsOf(route);
    this.#balancer = createBalancer(route, tools);
    this.#arrange(this.#renewed());
  }

  get route(): Route {
    return this.#route;
  }

  get members(): Members<Member> {
    return this.group.members;
  }

  /** Endpoints that stay keep their counts; connections to those that leave run on for the drain timeout. `now` in ticks. */
  update(route: Route, now: number): void {
    if (!isBalancedAlike(route, this.#route)) this.#balancer = createBalancer(route, this.#tools);
    if (route.settings !== this.#route.settings) this.#hosts = hostsOf(route);
    const before = this.#pool.all;
    this.#route = route;
    this.#arrange(this.#renewed());
    this.#depart(before, now);
  }

  /** The table of the endpoints that the route has now; undefined: it needs none any more. */
  setMaglev(slots: Uint16Array | undefined): void {
    this.#maglev = slots && { slots, loads: this.#pool.all };
    this.#arrange(this.#pool.all);
  }

  /** The listener is no longer the Service's. */
  leave(now: number): void {
    const before = this.#pool.all;
    this.#arrange([]);
    this.#depart(before, now);
  }

  /** Whether a client that asks for this name by TLS is at home here; null: it names none. */
  isServed(serverName: string | null): boolean {
    return this.#hosts === undefined || (serverName !== null && this.#hosts.find(serverName) === true);
  }

  /** What the main thread found of the health of the endpoints. `now` in ticks. */
  setHealth({ unused, failing, drained }: Pick<HealthOrder, 'unused' | 'failing' | 'drained'>, now: number): void {
    this.#unused = new Set(unused);
    this.#failed = new Set(failing);
    this.#arrange(this.#pool.all);
    if (this.#drained.size + drained.length > 0) this.#drain(new Set(drained), now);
  }

  onConnected(load: EndpointLoad): void {
    if (this.#doubted.size === 0 || !this.#doubted.delete(load)) return;
    this.#news.succeeded(this.#route.key, endpointKey(load.endpoint));
  }

  onConnectFailed(load: EndpointLoad): void {
    // One that has left is no longer judged, and would be remembered here for ever.
    if (load.rank === UNUSED && !this.#isPresent(load)) return;
    this.#doubted.add(load);
    this.#news.failed(this.#route.key, endpointKey(load.endpoint));
  }

  choose(client: Client, tried: readonly EndpointLoad[]): EndpointLoad | undefined {
    return this.#balancer.choose(this.#pool, client, tried);
  }

  hasUntried(tried: readonly EndpointLoad[]): boolean {
    return this.#pool.all.some((load) => load.rank !== UNUSED && !isTried(load, tried));
  }

  chooseUnused(tried: readonly EndpointLoad[]): EndpointLoad | undefined {
    const { all } = this.#pool;
    const from = Math.floor(this.#tools.random() * all.length);
    for (let step = 0; step < all.length; step += 1) {
      const load = all[(from + step) % all.length] as EndpointLoad;
      if (load.rank === UNUSED && !isTried(load, tried)) return load;
    }
    return undefined;
  }

  /** Sorts the endpoints anew, into those that are chosen first and the others. */
  #arrange(loads: readonly EndpointLoad[]): void {
    const { settings, zone } = this.#route;
    this.#markHealth(loads);
    this.#present = undefined;
    this.#pool = arrangePool(this.#pool, loads, {
      zone: settings.preferSameZone ? zone : null,
      maglev: this.#maglev,
    });
  }

  #markHealth(loads: readonly EndpointLoad[]): void {
    const othersServe = loads.some(({ isHealthy }) => isHealthy);
    if (this.#doubted.size > 0) this.#forgetOthers(new Set(loads));
    for (const load of loads) {
      const isHealthy = this.#unused.size === 0 || !this.#unused.has(endpointKey(load.endpoint));
      if (isHealthy === load.isHealthy) continue;
      load.isHealthy = isHealthy;
      // One that is chosen again since all fail has not recovered: spared, it would leave all to who failed last.
      if (isHealthy && othersServe && !this.#failed.has(endpointKey(load.endpoint))) load.warmSince = this.#tools.now();
      if (!isHealthy) this.#doubted.add(load);
    }
  }

  #drain(keys: ReadonlySet<string>, now: number): void {
    const { healthCheck } = this.#route.settings;
    // What else the Service asks for now has been read by the main thread, too, and is judged anew.
    const forMs = healthCheck.kind === 'off' ? undefined : healthCheck.drainTimeoutMs;
    const before = this.#drained;
    this.#drained = forMs === undefined ? NOBODY : keys;
    for (const load of this.#pool.all) {
      const key = endpointKey(load.endpoint);
      if (!this.#drained.has(key)) this.#failing.remove(load);
      else if (!before.has(key)) this.#giveWhile(this.#failing, load, now + ticksFor(forMs ?? 0));
    }
  }

  /** One that has left is judged no longer. */
  #forgetOthers(loads: ReadonlySet<EndpointLoad>): void {
    for (const load of this.#doubted) {
      if (loads.has(load)) continue;
      this.#doubted.delete(load);
      this.#news.forget(this.#route.key, endpointKey(load.endpoint));
    }
  }

  #isPresent(load: EndpointLoad): boolean {
    this.#present ??= new Set(this.#pool.all);
    return this.#present.has(load);
  }

  #renewed(): readonly EndpointLoad[] {
    return renewLoads(this.#route.endpoints, this.#pool.all, {
      now: this.#tools.now(),
      departed: (key) => this.#takeBack(key),
    });
  }

  #takeBack(key: string): EndpointLoad | undefined {
    const load = this.#departed.get(key);
    if (load === undefined) return undefined;
    this.#departed.delete(key);
    this.#departures.remove(load);
    // Why it was given a while went by while it was away.
    if (!this.#drained.has(key)) this.#failing.remove(load);
    return load;
  }

  #depart(before: readonly EndpointLoad[], now: number): void {
    const dueAt = now + ticksFor(this.#route.settings.drainTimeoutMs);
    for (const [key, load] of this.#departed) if (load.active === 0) this.#departed.delete(key);
    const stayed = new Set(this.#pool.all);
    for (const load of before) {
      if (stayed.has(load) || load.active === 0) continue;
      this.#departed.set(endpointKey(load.endpoint), load);
      this.#giveWhile(this.#departures, load, dueAt);
    }
  }

  #giveWhile(departures: Departures, load: EndpointLoad, dueAt: number): void {
    departures.add(load, { service: this.group.service.uid, members: this.group.members, dueAt });
  }
}

const NOBODY: ReadonlySet<string> = new Set();

function hostsOf({ settings: { hosts } }: Route): HostTable<true> | undefined {
  if (hosts.length === 0) return undefined;
  const table = HOST_TABLES.get(hosts) ?? compileHosts(hosts.map((host) => [host, true]));
  HOST_TABLES.set(hosts, table);
  return table;
}

/** Of the list of a Service, once for all its homes: a tenant can write tens of thousands of hosts, and thousands of ports. */
const HOST_TABLES = new WeakMap<readonly string[], HostTable<true>>();
