// The HTTP routes of one listener, with what gets their requests: one Service, or the backends of a table entry.
import type { RouteMatch } from '../http/path-index.ts';
import type { HttpRoute, HttpTimeouts } from '../http/route.ts';
import { httpRouteOf } from '../http/service-route.ts';
import { backendRouteKey, type ListenerKey, type Route, type RouteKey } from './route.ts';

/** The route of a request, and the condition of the HTTP route that the request meets. */
export interface RouteOfRequest {
  /** Undefined if the chosen backend cannot be used, or if no backend has a weight. */
  readonly route: Route | undefined;
  readonly match: RouteMatch;
  readonly target: RouteTarget;
}

/** The destination of requests of an HTTP route. All requests share one object per destination. */
export interface RouteTarget {
  /** The longest time for a request, in addition to the timeout of the Service; undefined for no limit. */
  readonly timeoutMs: number | undefined;
  /** A cache for the worker, which stores the upstream of the route here. */
  cached: object | undefined;
}

/** An HTTP route at a listener. A route that the annotations of a Service make is itself the target of its requests. */
export interface ListenerHttpRoute extends HttpRoute, RouteTarget {
  /**
   * The route of the Service whose annotations make the HTTP route. Stored here because a look-up would cost several cache misses. Undefined
   * if the HTTP route is a table entry.
   */
  readonly route: Route | undefined;
  /** Empty if the annotations of a Service make the HTTP route. */
  readonly targets: readonly BackendTarget[];
}

export interface BackendTarget extends RouteTarget {
  readonly key: RouteKey;
  readonly weight: number;
}

/** Stands for the backend of a request if no backend has a weight. No route has this key. */
export const NO_BACKEND: BackendTarget = { key: '', weight: 0, timeoutMs: undefined, cached: undefined };

const NO_TARGETS: readonly BackendTarget[] = Object.freeze([]);

/** Returns the HTTP route that the annotations of a Service make. The settings of the Service have the timeout. */
export function serviceHttpRoute(route: Route): ListenerHttpRoute {
  return { ...httpRouteOf(route), route, targets: NO_TARGETS, timeoutMs: undefined, cached: undefined };
}

/** Returns the HTTP route of a table entry at a listener. */
export function backendHttpRoute(route: HttpRoute, listener: ListenerKey): ListenerHttpRoute {
  const timeoutMs = timeoutOf(route.timeouts);
  const targets = route.backends.map(({ service, port, weight }): BackendTarget => {
    return { key: backendRouteKey(listener, service, port), weight, timeoutMs, cached: undefined };
  });
  return { ...route, route: undefined, targets, timeoutMs, cached: undefined };
}

/** Returns the shorter timeout, because most requests are sent to one endpoint only. */
function timeoutOf({ requestMs, backendRequestMs }: HttpTimeouts): number | undefined {
  const shortest = Math.min(requestMs ?? Number.POSITIVE_INFINITY, backendRequestMs ?? Number.POSITIVE_INFINITY);
  return shortest === Number.POSITIVE_INFINITY ? undefined : shortest;
}
