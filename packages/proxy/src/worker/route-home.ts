import { type Balancer, createBalancer, type Endpoint, type EndpointLoad, endpointKey, type Route } from '@weir/model';
import type { Connection, ConnectionHome } from '../relay/connection.ts';
import type { ServiceGroup } from './service-group.ts';

/** What the connections of one listener share: the route of the moment, and how many are open to each endpoint. */
export class RouteHome implements ConnectionHome {
  readonly group: ServiceGroup;
  #route: Route;
  #balancer: Balancer;
  #loads: readonly EndpointLoad[] = [];

  constructor(route: Route, group: ServiceGroup) {
    this.group = group;
    this.#route = route;
    this.#balancer = createBalancer(route.settings, Math.random);
    this.#loads = loadsFor(route.endpoints, []);
  }

  get route(): Route {
    return this.#route;
  }

  get members(): Set<Connection> {
    return this.group.members;
  }

  /** Endpoints that stay keep their counts; connections to those that left run on. */
  update(route: Route): void {
    if (!hasSameBalance(route, this.#route)) this.#balancer = createBalancer(route.settings, Math.random);
    if (route.endpoints !== this.#route.endpoints) this.#loads = loadsFor(route.endpoints, this.#loads);
    this.#route = route;
  }

  choose(source: string, tried: readonly EndpointLoad[]): EndpointLoad | undefined {
    if (tried.length === 0) return this.#balancer.choose(this.#loads, source);
    const seen = new Set(tried.map((load) => endpointKey(load.endpoint)));
    return this.#balancer.choose(
      this.#loads.filter((load) => !seen.has(endpointKey(load.endpoint))),
      source,
    );
  }
}

function loadsFor(endpoints: readonly Endpoint[], before: readonly EndpointLoad[]): readonly EndpointLoad[] {
  const known = new Map(before.map((load) => [endpointKey(load.endpoint), load]));
  return endpoints.map((endpoint) => known.get(endpointKey(endpoint)) ?? { endpoint, active: 0 });
}

function hasSameBalance({ settings: a }: Route, { settings: b }: Route): boolean {
  return a.algorithm === b.algorithm && a.affinity.kind === b.affinity.kind;
}
