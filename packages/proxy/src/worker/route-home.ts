import {
  type Balancer,
  type Client,
  createBalancer,
  type Endpoint,
  type EndpointLoad,
  endpointKey,
  type Route,
} from '@weir/model';
import type { ConnectionHome } from '../relay/connection-home.ts';
import type { Member } from '../relay/member.ts';
import { ticksFor } from '../relay/ticks.ts';
import type { Departures } from './departures.ts';
import type { ServiceGroup } from './service-group.ts';

/** What the connections of one listener share: the route of the moment, and how many are open to each endpoint. */
export class RouteHome implements ConnectionHome {
  readonly group: ServiceGroup;
  readonly #departures: Departures;
  /** Left, with connections that may go on for a while. */
  readonly #departed = new Map<string, EndpointLoad>();
  #route: Route;
  #balancer: Balancer;
  #loads: readonly EndpointLoad[] = [];

  constructor(route: Route, { group, departures }: { group: ServiceGroup; departures: Departures }) {
    this.group = group;
    this.#departures = departures;
    this.#route = route;
    this.#balancer = createBalancer(route.settings, Math.random);
    this.#loads = this.#loadsFor(route.endpoints);
  }

  get route(): Route {
    return this.#route;
  }

  get members(): Set<Member> {
    return this.group.members;
  }

  /** Endpoints that stay keep their counts; connections to those that leave run on for the drain timeout. `now` in ticks. */
  update(route: Route, now: number): void {
    if (!hasSameBalance(route, this.#route)) this.#balancer = createBalancer(route.settings, Math.random);
    const before = this.#loads;
    const hasSameEndpoints = route.endpoints === this.#route.endpoints;
    this.#route = route;
    if (hasSameEndpoints) return;
    this.#loads = this.#loadsFor(route.endpoints);
    this.#depart(before, now);
  }

  /** The listener is no longer the Service's. */
  leave(now: number): void {
    const before = this.#loads;
    this.#loads = [];
    this.#depart(before, now);
  }

  /** Whether a client that asks for this name by TLS is at home here; null: it names none. */
  isServed(serverName: string | null): boolean {
    const { hosts } = this.#route.settings;
    return hosts.length === 0 || (serverName !== null && hosts.includes(serverName));
  }

  onConnected(): void {}

  onConnectFailed(): void {}

  choose(client: Client, tried: readonly EndpointLoad[]): EndpointLoad | undefined {
    if (tried.length === 0) return this.#balancer.choose(this.#loads, client.address);
    const seen = new Set(tried.map((load) => endpointKey(load.endpoint)));
    return this.#balancer.choose(
      this.#loads.filter((load) => !seen.has(endpointKey(load.endpoint))),
      client.address,
    );
  }

  #loadsFor(endpoints: readonly Endpoint[]): readonly EndpointLoad[] {
    const known = new Map(this.#loads.map((load) => [endpointKey(load.endpoint), load]));
    return endpoints.map((endpoint) => {
      const key = endpointKey(endpoint);
      const back = this.#departed.get(key);
      if (back !== undefined) {
        this.#departed.delete(key);
        this.#departures.remove(back);
      }
      return known.get(key) ?? back ?? { endpoint, active: 0 };
    });
  }

  #depart(before: readonly EndpointLoad[], now: number): void {
    const dueAt = now + ticksFor(this.#route.settings.drainTimeoutMs);
    for (const [key, load] of this.#departed) if (load.active === 0) this.#departed.delete(key);
    const stayed = new Set(this.#loads);
    for (const load of before) {
      if (stayed.has(load) || load.active === 0) continue;
      this.#departed.set(endpointKey(load.endpoint), load);
      this.#departures.add(load, { members: this.group.members, dueAt });
    }
  }
}

function hasSameBalance({ settings: a }: Route, { settings: b }: Route): boolean {
  return a.algorithm === b.algorithm && a.affinity.kind === b.affinity.kind;
}
