// Which sockets a proxy should have: pure. A listener without a ready endpoint, or of a Service that is cut off, is held:
// clients are refused by the kernel, but the port stays the Service's and counts as bound. One that several Services share is open
// as long as one of them has an endpoint, also for those that are cut off: their clients get an alert.
import {
  type ListenerEntry,
  type ListenerKey,
  type ListenerRoutes,
  type Matcher,
  type Route,
  type Suspension,
  suspensionFor,
} from '@weir/model/data-plane';

/** What a proxy has of a listener now. */
export type ListenerStatus =
  | { readonly kind: 'open' }
  | { readonly kind: 'allocated' }
  /** Being probed, opened or closed: judged again when that is over. */
  | { readonly kind: 'busy' }
  /** `retryAt` as `monotonic`. */
  | { readonly kind: 'failed'; readonly retryAt: number };

export type ListenerStep =
  | { readonly kind: 'open'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'allocate'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'keep'; readonly key: ListenerKey }
  | { readonly kind: 'close'; readonly key: ListenerKey };

export interface PlanListenersInput {
  readonly matcher: Matcher;
  readonly cutoffs: readonly Suspension[];
  readonly present: ReadonlyMap<ListenerKey, ListenerStatus>;
  /** Milliseconds since the epoch: for the end of a cut-off. */
  readonly now: number;
  /** Milliseconds of a clock that never jumps: for retries. */
  readonly monotonic: number;
  /** The listeners that may need something; absent: all that are wanted or present. */
  readonly keys?: Iterable<ListenerKey>;
}

const STEP_ORDER: Record<ListenerStep['kind'], number> = { open: 0, keep: 1, allocate: 2, close: 3 };

/** One step for each listener, new ones opened before old ones are closed. */
export function planListeners(question: PlanListenersInput): ListenerStep[] {
  const { matcher, present } = question;
  const keys = new Set(question.keys ?? [...matcher.listeners.keys(), ...present.keys()]);
  return [...keys]
    .flatMap((key) => stepFor(key, question))
    .sort((a, b) => STEP_ORDER[a.kind] - STEP_ORDER[b.kind] || (a.key < b.key ? -1 : 1));
}

function stepFor(key: ListenerKey, { matcher, cutoffs, present, now, monotonic }: PlanListenersInput): ListenerStep[] {
  const listener = matcher.listeners.get(key);
  const has = present.get(key);
  if (has?.kind === 'busy') return [{ kind: 'keep', key }];
  if (listener === undefined) return has === undefined ? [] : [{ kind: 'close', key }];
  const isWaiting = has?.kind === 'failed' && monotonic < has.retryAt;
  const wanted = isWanted(listener, cutoffs, now) ? 'open' : 'allocate';
  const isThere = wanted === 'open' ? has?.kind === 'open' : has?.kind === 'allocated';
  return [isWaiting || isThere ? { kind: 'keep', key } : { kind: wanted, key, at: listener.listener }];
}

function isWanted({ exclusive, shared }: ListenerRoutes, cutoffs: readonly Suspension[], now: number): boolean {
  if (exclusive !== undefined) return isServing(exclusive, cutoffs, now);
  for (const { endpoints } of shared.values()) if (endpoints.length > 0) return true;
  return false;
}

/** Whether clients of the Service are let in. */
export function isServing(route: Route, cutoffs: readonly Suspension[], now: number): boolean {
  return route.endpoints.length > 0 && suspensionFor(cutoffs, route.service, now) === undefined;
}
