// Which sockets a proxy should have: pure. A listener without a ready endpoint, or of a Service that is cut off, is held:
// clients are refused by the kernel, but the port stays the Service's and counts as bound. One that several Services share is open
// as long as one of them has an endpoint, also for those that are cut off: their clients get an alert.
import {
  type Cutoff,
  cutoffFor,
  type ListenerEntry,
  type ListenerKey,
  type ListenerRoutes,
  type Matcher,
  type Route,
} from '@weir/model/data-plane';

/** What a proxy has of a listener now. */
export type Present =
  | { readonly kind: 'open' }
  | { readonly kind: 'held' }
  /** Being probed, opened or closed: judged again when that is over. */
  | { readonly kind: 'busy' }
  /** `retryAt` as `monotonic`. */
  | { readonly kind: 'failed'; readonly retryAt: number };

export type ListenerStep =
  | { readonly kind: 'open'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'hold'; readonly key: ListenerKey; readonly at: ListenerEntry }
  | { readonly kind: 'keep'; readonly key: ListenerKey }
  | { readonly kind: 'close'; readonly key: ListenerKey };

export interface ListenerQuestion {
  readonly matcher: Matcher;
  readonly cutoffs: readonly Cutoff[];
  readonly present: ReadonlyMap<ListenerKey, Present>;
  /** Milliseconds since the epoch: for the end of a cut-off. */
  readonly now: number;
  /** Milliseconds of a clock that never jumps: for retries. */
  readonly monotonic: number;
  /** The listeners that may need something; absent: all that are wanted or present. */
  readonly keys?: Iterable<ListenerKey>;
}

const ORDER: Record<ListenerStep['kind'], number> = { open: 0, keep: 1, hold: 2, close: 3 };

/** One step for each listener, new ones opened before old ones are closed. */
export function planListeners(question: ListenerQuestion): ListenerStep[] {
  const { matcher, present } = question;
  const keys = new Set(question.keys ?? [...matcher.listeners.keys(), ...present.keys()]);
  return [...keys]
    .flatMap((key) => stepFor(key, question))
    .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || (a.key < b.key ? -1 : 1));
}

function stepFor(key: ListenerKey, { matcher, cutoffs, present, now, monotonic }: ListenerQuestion): ListenerStep[] {
  const listener = matcher.listeners.get(key);
  const has = present.get(key);
  if (has?.kind === 'busy') return [{ kind: 'keep', key }];
  if (listener === undefined) return has === undefined ? [] : [{ kind: 'close', key }];
  const isWaiting = has?.kind === 'failed' && monotonic < has.retryAt;
  const wanted = isWanted(listener, cutoffs, now) ? 'open' : 'hold';
  const isThere = wanted === 'open' ? has?.kind === 'open' : has?.kind === 'held';
  return [isWaiting || isThere ? { kind: 'keep', key } : { kind: wanted, key, at: listener.at }];
}

function isWanted({ alone, shares }: ListenerRoutes, cutoffs: readonly Cutoff[], now: number): boolean {
  if (alone !== undefined) return isServing(alone, cutoffs, now);
  for (const { endpoints } of shares.values()) if (endpoints.length > 0) return true;
  return false;
}

/** Whether clients of the Service are let in. */
export function isServing(route: Route, cutoffs: readonly Cutoff[], now: number): boolean {
  return route.endpoints.length > 0 && cutoffFor(cutoffs, route.service, now) === undefined;
}
