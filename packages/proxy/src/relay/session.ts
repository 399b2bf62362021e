import type { Client, EndpointStats, Route } from '@weir/model/data-plane';
import type { Shaper } from '../limits/shaper.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { TimeoutWheel, WheelEntry } from './timeout-wheel.ts';

/** Something open that belongs to a Service: what a Suspension or the end of a drain severs, and what has a deadline. */
export interface Session extends WheelEntry, IndexedEntry {
  /** The endpoint that it goes to. */
  readonly endpointStats: EndpointStats | undefined;
  /** Ends it now. Once it has ended nothing happens. */
  end(outcome: Outcome): void;
  onExpired(): void;
  /** The endpoint that it goes to is none of the Service's any more, or fails its check. */
  onEndpointUnavailable(): void;
}

/** What is open of somebody; whoever goes through it sees those that are in it then, and they may leave meanwhile. */
export interface SessionCollection<T> extends Iterable<T> {
  readonly size: number;
  add(item: T): unknown;
  delete(item: T): unknown;
}

/**
 * What is open of one Service. Not a Set: one that thousands enter and leave each second is made anew again and again, and its
 * former tables keep those who have left alive until the old generation is collected, which costs more than relaying them.
 */
export class SessionSet<T extends IndexedEntry> implements SessionCollection<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.sessionIndex = this.#items.length;
    this.#items.push(item);
  }

  /** Nothing happens when it is not in here. */
  delete(item: T): void {
    const at = item.sessionIndex;
    if (this.#items[at] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[at] = last;
    last.sessionIndex = at;
  }

  /** Those that are in here now: they may leave meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}

export interface IndexedEntry {
  /** The own of the one book that it is in. */
  sessionIndex: number;
}

/** What a connection needs of its worker. */
export interface RelayContext {
  readonly transport: TcpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  /** A connection threw: a bug. It is over by then. */
  onInternalError(thrown: unknown): void;
  /** A connect failed; `code` as in errno. Some codes are of this host, not of the endpoint. */
  onConnectError(code: string | undefined): void;
}

/** Where a connection belongs: what it chooses from, and who must know of it. */
export interface RelayUpstream {
  readonly route: Route;
  readonly sessions: SessionSet<Session>;
  /** An endpoint that is not among `tried`; undefined: none is left. */
  choose(client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined;
  /** Whether `choose` would find one. Asking is no turn: it leaves everything as it is. */
  hasUntriedEndpoint(tried: readonly EndpointStats[]): boolean;
  /** One that is not chosen because it does not work, as far as is known; undefined: none is left. */
  chooseExcluded(tried: readonly EndpointStats[]): EndpointStats | undefined;
  onConnected(load: EndpointStats): void;
  /** It refused, or did not answer in time. */
  onConnectFailed(load: EndpointStats): void;
}
