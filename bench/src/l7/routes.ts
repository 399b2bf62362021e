const HOSTS = 100;
const PREFIXES_PER_HOST = 10;

/**
 * A route of the listener `routes`: requests for a host whose path begins with `pathPrefix`. Each route has a backend of its own, which shares
 * no connections with another route, as in a cluster in which each route belongs to a Service.
 */
export type BenchmarkRoute = {
  /** The name of the backend. */
  readonly backend: string;
  readonly host: string;
  /** Without a slash at its end. */
  readonly pathPrefix: string;
};

/** 1,000 routes: 100 hosts with 10 path prefixes each. All hosts and all prefixes have the same length. */
export const ROUTES: readonly BenchmarkRoute[] = Array.from({ length: HOSTS * PREFIXES_PER_HOST }, (_, index) => ({
  backend: `routes-${index}`,
  host: `shop-${String(Math.floor(index / PREFIXES_PER_HOST)).padStart(3, '0')}.example`,
  pathPrefix: `/team-${index % PREFIXES_PER_HOST}`,
}));

/** Routes by host. */
export const ROUTES_BY_HOST: ReadonlyMap<string, readonly BenchmarkRoute[]> = Map.groupBy(ROUTES, ({ host }) => host);

/** Returns a target below the prefix of a route, as wrk requests it. */
export function pathWithin({ pathPrefix }: BenchmarkRoute): string {
  return `${pathPrefix}/items/1`;
}
