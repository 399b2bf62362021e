// Plans which listeners a proxy opens. If the Service of a listener has no endpoint or is suspended, the listener is
// allocated but not opened: the kernel refuses clients, but the Service keeps the port, and the port is reported as
// bound. A listener for HTTP stays open while its Service is suspended, so that clients get an HTTP response that says
// why. A shared listener is open as long as one of its Services has an endpoint or sends such responses. Without HTTP,
// clients of suspended Services get a TLS alert there.
import {
  isBackend,
  type ListenerEntry,
  type ListenerKey,
  type ListenerRoutes,
  type Matcher,
  type Route,
  relaysHttp,
  type Suspension,
  suspensionFor,
} from '@weir/model/data-plane';

export type ListenerStatus =
  | { readonly kind: 'open' }
  | { readonly kind: 'allocated' }
  /** The port is being probed. The listener is planned again when the probe has ended. */
  | { readonly kind: 'busy' }
  /** `retryAt` is on the same clock as `PlanListenersInput.monotonic`. */
  | { readonly kind: 'failed'; readonly retryAt: number };

export type ListenerStep =
  | { readonly kind: 'open'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'allocate'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'keep'; readonly key: ListenerKey }
  | { readonly kind: 'close'; readonly key: ListenerKey };

export interface PlanListenersInput {
  readonly matcher: Matcher;
  readonly suspensions: readonly Suspension[];
  readonly present: ReadonlyMap<ListenerKey, ListenerStatus>;
  /** The current time in milliseconds since the epoch, which decides whether a suspension has ended. */
  readonly now: number;
  /** The current time in milliseconds of a clock that never jumps, which decides whether a retry is due. */
  readonly monotonic: number;
  /** The listeners to plan; by default all that are wanted or present. */
  readonly keys?: Iterable<ListenerKey>;
}

const STEP_ORDER: Record<ListenerStep['kind'], number> = { open: 0, keep: 1, allocate: 2, close: 3 };

/**
 * Returns one step for each listener. Steps that open listeners come first, and steps that close listeners come last.
 */
export function planListeners(input: PlanListenersInput): ListenerStep[] {
  const { matcher, present } = input;
  const keys = new Set(input.keys ?? [...matcher.listeners.keys(), ...present.keys()]);
  return [...keys]
    .flatMap((key) => stepFor(key, input))
    .sort((a, b) => STEP_ORDER[a.kind] - STEP_ORDER[b.kind] || (a.key < b.key ? -1 : 1));
}

function stepFor(key: ListenerKey, input: PlanListenersInput): ListenerStep[] {
  const { matcher, suspensions, present, now, monotonic } = input;
  const listener = matcher.listeners.get(key);
  const status = present.get(key);
  if (status?.kind === 'busy') return [{ kind: 'keep', key }];
  if (listener === undefined) return status === undefined ? [] : [{ kind: 'close', key }];
  const isWaiting = status?.kind === 'failed' && monotonic < status.retryAt;
  const wanted = isWanted(listener, suspensions, now) ? 'open' : 'allocate';
  const isReached = status?.kind === (wanted === 'open' ? 'open' : 'allocated');
  return [isWaiting || isReached ? { kind: 'keep', key } : { kind: wanted, key, at: listener.listener }];
}

function isWanted({ exclusive, shared }: ListenerRoutes, suspensions: readonly Suspension[], now: number): boolean {
  const answersSuspension = (route: Route): boolean =>
    relaysHttp(route) && suspensionFor(suspensions, route.service, now) !== undefined;
  if (exclusive !== undefined) return isServing(exclusive, suspensions, now) || answersSuspension(exclusive);
  for (const route of shared.values())
    if (route.endpoints.length > 0 || isBackend(route) || answersSuspension(route)) return true;
  return false;
}

/** Whether the Service has an endpoint and is not suspended. */
export function isServing(route: Route, suspensions: readonly Suspension[], now: number): boolean {
  return route.endpoints.length > 0 && suspensionFor(suspensions, route.service, now) === undefined;
}
