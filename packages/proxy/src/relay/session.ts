import type { EndpointStats, NetworkSet } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { HandshakeQueue } from '../accept/handshake-queue.ts';
import type { AccessLog } from '../access-log/access-log.ts';
import type { EndpointConnections } from '../http/endpoint-connections.ts';
import type { RequestTurns } from '../http/request-turns.ts';
import type { Shaper } from '../limits/shaper.ts';
import type { WorkerBuffers } from '../limits/tenant-buffers.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { TopClientsCounter } from '../metering/top-clients-counter.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { TimeoutWheel, WheelEntry } from './timeout-wheel.ts';

/** An open TCP connection, TLS handshake or UDP flow. A suspension, a drain or the session's deadline can end it. */
export interface Session extends WheelEntry, IndexedEntry {
  /** The endpoint to which the session is connected or connecting, if any. */
  readonly endpointStats: EndpointStats | undefined;
  /** The open requests, if the session can carry several at a time. Each request may go to a different endpoint. */
  readonly requests?: Iterable<Session>;
  /** Ends the session. Does nothing if the session has already ended. */
  end(outcome: Outcome): void;
  onExpired(): void;
  /** Called when the endpoint has left the Service or fails its health check. */
  onEndpointUnavailable(): void;
  /** Called when the worker begins to drain. Absent if the session then continues until its peers end it. */
  onWorkerDrain?(): void;
}

export interface IndexedEntry {
  /** The index of this entry in its `SessionSet`. Only the `SessionSet` writes this field. */
  sessionIndex: number;
}

/**
 * The open sessions of one Service. A Set is not used, because it would cost more than relaying: if thousands of
 * sessions enter and leave each second, V8 often rehashes the Set, and its former hash tables keep ended sessions in
 * memory until the next garbage collection of the old generation.
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

  /** Deletes the item. Does nothing if the item is not in the set. */
  delete(item: T): void {
    const at = item.sessionIndex;
    if (this.#items[at] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[at] = last;
    last.sessionIndex = at;
  }

  /** Iterates over a copy, so that items may be added and deleted during the iteration. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}

/** A session with relayed bytes that are not all counted as sent, or whose buffered bytes must be measured. */
export interface SendingSession {
  /** The index of this session in its `SendingSessions`, or -1. Only `SendingSessions` writes this field. */
  sendingIndex: number;
  /**
   * Counts the bytes that the client has acknowledged since the last call, and measures the buffered bytes. Returns
   * whether the session must be asked again.
   */
  countSent(): boolean;
}

/**
 * The sessions of a worker whose written bytes are not all counted yet. Once a second each session asks the kernel how
 * many bytes its client has acknowledged, so relaying a chunk costs no such system call.
 */
export class SendingSessions {
  readonly #sessions: SendingSession[] = [];

  /** Adds the session, unless it is in the list. */
  add(session: SendingSession): void {
    if (session.sendingIndex >= 0) return;
    session.sendingIndex = this.#sessions.length;
    this.#sessions.push(session);
  }

  /** Deletes the session. Does nothing if the session is not in the list. */
  delete(session: SendingSession): void {
    const index = session.sendingIndex;
    if (index < 0) return;
    session.sendingIndex = -1;
    const last = this.#sessions.pop() as SendingSession;
    if (last === session) return;
    this.#sessions[index] = last;
    last.sendingIndex = index;
  }

  /** Must be called once a second. */
  tick(): void {
    // Iterates backwards, because `delete` moves the last session into the gap, and that session has been asked already.
    for (let index = this.#sessions.length - 1; index >= 0; index -= 1) {
      const session = this.#sessions[index] as SendingSession;
      if (!session.countSent()) this.delete(session);
    }
  }
}

/** The parts of the worker that a TCP connection uses. */
export interface RelayContext {
  readonly transport: TcpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly sending: SendingSessions;
  readonly handshakes: HandshakeQueue;
  readonly requestTurns: RequestTurns;
  readonly buffers: WorkerBuffers;
  readonly endpointConnections: EndpointConnections;
  /**
   * Decrypts the private keys of certificates for endpoints. Undefined if this proxy does not have the fleet's secret.
   */
  readonly sealer: Sealer | undefined;
  /** Whether this proxy accepts no connections any more. Written only by the worker. */
  isDraining: boolean;
  /** See the command `drain`. */
  drainIdleMs: number;
  readonly accessLog: AccessLog;
  /** Undefined if clients are not counted. */
  readonly topClients: TopClientsCounter | undefined;
  /** The HTTP proxies in front of Weir whose fields about the client, such as X-Forwarded-For, are trusted. */
  readonly trustForwarded: NetworkSet;
  /** Whether endpoints get Forwarded (RFC 7239) in addition to X-Forwarded-For. */
  readonly writeForwarded: boolean;
  /** Called with an unexpected exception that ends a connection. */
  onInternalError(thrown: unknown): void;
  /**
   * Called with the errno name of a failed connection attempt. Some names mean that this host failed, not the endpoint.
   */
  onConnectError(code: string | undefined): void;
}
