// Which sockets a proxy should have: pure. A listener without a ready endpoint, or of a Service that is cut off, is held:
// clients are refused by the kernel, but the port stays the Service's and counts as bound.
import { type Cutoff, cutoffFor, type ListenerKey, type Matcher, type Route } from '@weir/model';

/** What a proxy has of a listener now. */
export type Present =
  | { readonly kind: 'open' }
  | { readonly kind: 'held' }
  /** Being probed, opened or closed: judged again when that is over. */
  | { readonly kind: 'busy' }
  /** `retryAt` as `monotonic`. */
  | { readonly kind: 'failed'; readonly retryAt: number };

export type ListenerStep =
  | { readonly kind: 'open'; readonly key: ListenerKey; readonly route: Route }
  | { readonly kind: 'hold'; readonly key: ListenerKey; readonly route: Route }
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
  const keys = new Set(question.keys ?? [...matcher.routes.keys(), ...present.keys()]);
  return [...keys]
    .flatMap((key) => stepFor(key, question))
    .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || (a.key < b.key ? -1 : 1));
}

function stepFor(key: ListenerKey, { matcher, cutoffs, present, now, monotonic }: ListenerQuestion): ListenerStep[] {
  const route = matcher.routes.get(key);
  const has = present.get(key);
  if (has?.kind === 'busy') return [{ kind: 'keep', key }];
  if (route === undefined) return has === undefined ? [] : [{ kind: 'close', key }];
  const isWaiting = has?.kind === 'failed' && monotonic < has.retryAt;
  const wanted = isServing(route, cutoffs, now) ? 'open' : 'hold';
  const isThere = wanted === 'open' ? has?.kind === 'open' : has?.kind === 'held';
  return [isWaiting || isThere ? { kind: 'keep', key } : { kind: wanted, key, route }];
}

function isServing(route: Route, cutoffs: readonly Cutoff[], now: number): boolean {
  return route.endpoints.length > 0 && cutoffFor(cutoffs, route.service, now) === undefined;
}
