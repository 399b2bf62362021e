import type { EndpointStats } from '@weir/model/data-plane';
import type { Shaper } from '../limits/shaper.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { TimeoutWheel, WheelEntry } from './timeout-wheel.ts';

/** An open connection, handshake or flow. A suspension, a drain or its deadline can end it. */
export interface Session extends WheelEntry, IndexedEntry {
  /** The endpoint to which the session is connected, or is connecting. */
  readonly endpointStats: EndpointStats | undefined;
  /** Ends the session. Has no effect after it has ended. */
  end(outcome: Outcome): void;
  onExpired(): void;
  /** Called when the endpoint has left the Service or fails its health check. */
  onEndpointUnavailable(): void;
}

export interface IndexedEntry {
  /** The index in the `SessionSet` that contains the entry. Only this set writes it. */
  sessionIndex: number;
}

/**
 * The open sessions of one Service. This is not a Set, because V8 often rehashes a Set that thousands enter and leave each
 * second, and its former tables keep ended sessions alive until the old generation is collected. That would cost more than
 * relaying.
 */
export class SessionSet<T extends IndexedEntry> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.sessionIndex = this.#items.length;
    this.#items.push(item);
  }

  /** Deletes the item. Has no effect if it is not in the set. */
  delete(item: T): void {
    const at = item.sessionIndex;
    if (this.#items[at] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[at] = last;
    last.sessionIndex = at;
  }

  /** Iterates over a copy, so that items may be added and deleted meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}

/** The parts of its worker that a TCP connection uses. */
export interface RelayContext {
  readonly transport: TcpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  /** Called when a defect has ended a connection. */
  onInternalError(thrown: unknown): void;
  /** Called when a connect has failed with this errno. Some codes are failures of this host, not of the endpoint. */
  onConnectError(code: string | undefined): void;
}
