import type { Route } from '../match/route.ts';
import type { HttpFilter, HttpMatch, HttpRoute } from './route.ts';

/**
 * Returns the HTTP route for the annotations of a Service at one of its listeners: the hosts and the path prefix of the Service, with the
 * Service's port as the only backend. The id is the key of `route`. Host and path prefix of two Services at one listener always differ, so
 * `createdAt` decides nothing and is 0.
 */
export function httpRouteOf({ key, listener, service, settings }: Route): HttpRoute {
  const { hosts, pathPrefix = '/', stripPrefix, requestTimeoutMs } = settings;
  const match: HttpMatch = { path: { kind: 'prefix', value: pathPrefix }, method: null, headers: [], query: [] };
  return {
    id: key,
    tenant: service.tenant ?? '',
    createdAt: 0,
    hosts,
    matches: [match],
    filters: stripPrefix === true ? [STRIP_PREFIX] : [],
    backends: [{ service: service.uid, port: listener.port, weight: 1 }],
    timeouts: requestTimeoutMs === undefined ? NO_TIMEOUTS : { ...NO_TIMEOUTS, requestMs: requestTimeoutMs },
  };
}

const STRIP_PREFIX: HttpFilter = Object.freeze({
  kind: 'rewrite',
  host: null,
  path: Object.freeze({ kind: 'prefix', value: '/' }),
});
const NO_TIMEOUTS: HttpRoute['timeouts'] = Object.freeze({ requestMs: null, backendRequestMs: null });
