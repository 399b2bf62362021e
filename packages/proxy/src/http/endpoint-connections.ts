import type { EndpointStats } from '@weir/model/data-plane';
import { EXCLUDED } from '@weir/model/data-plane';
import type { TcpTransport, Window } from '../transport/tcp-transport.ts';
import { EndpointConnection, type IdleConnectionOwner } from './endpoint-connection.ts';
import type { EndpointTls } from './endpoint-tls.ts';

/** How many connections to one endpoint may be idle in one worker. */
const MAX_IDLE_PER_ENDPOINT = 32;
/** How many connections to all endpoints may be idle in one worker. */
const MAX_IDLE = 1_024;
/** How long a connection may be idle, in ticks of the timeout wheel (seconds). Less than most endpoints wait. */
const MAX_IDLE_TICKS = 30;
/** How many requests one connection carries, so that requests move to new endpoints. */
const MAX_REQUESTS = 10_000;

/**
 * The connections of one worker to the endpoints of all Services. Each `EndpointStats` belongs to one Service, so Services
 * never share a connection.
 */
export class EndpointConnections implements IdleConnectionOwner {
  readonly #transport: TcpTransport;
  readonly #idle = new Map<EndpointStats, EndpointConnection[]>();
  #idleCount = 0;

  constructor(transport: TcpTransport) {
    this.#transport = transport;
  }

  get idleCount(): number {
    return this.#idleCount;
  }

  /**
   * Returns the connection with this TLS that became idle last, or undefined if there is none. Closes connections with
   * other TLS, because their certificates were verified with other CAs.
   */
  takeIdle(stats: EndpointStats, tls: EndpointTls | undefined): EndpointConnection | undefined {
    const connections = this.#idle.get(stats);
    for (let connection = connections?.pop(); connection !== undefined; connection = connections?.pop()) {
      this.#idleCount -= 1;
      if (connection.tls === tls) return connection;
      connection.close();
    }
    return undefined;
  }

  open(stats: EndpointStats, window: Window, tls: EndpointTls | undefined): EndpointConnection {
    const connection = new EndpointConnection(stats, tls, this);
    connection.stream =
      tls === undefined ? this.#transport.connect(stats.endpoint, connection, window) : tls.connect(stats, connection);
    return connection;
  }

  /** Keeps a connection whose response is complete for the next request, or closes the connection. */
  keep(connection: EndpointConnection, now: number): void {
    const { stats, requests } = connection;
    let connections = this.#idle.get(stats);
    const isFull = this.#idleCount >= MAX_IDLE || (connections?.length ?? 0) >= MAX_IDLE_PER_ENDPOINT;
    if (isFull || requests >= MAX_REQUESTS || stats.tier === EXCLUDED) {
      connection.close();
      return;
    }
    if (connections === undefined) {
      connections = [];
      this.#idle.set(stats, connections);
    }
    connection.idleSince = now;
    connections.push(connection);
    this.#idleCount += 1;
  }

  onIdleConnectionEnd(connection: EndpointConnection): void {
    const connections = this.#idle.get(connection.stats);
    const index = connections?.indexOf(connection) ?? -1;
    if (index < 0) return;
    connections?.splice(index, 1);
    this.#idleCount -= 1;
  }

  /** Closes connections that were idle for too long, or whose endpoint is not used any more. Must be called once a second. */
  tick(now: number): void {
    for (const [stats, connections] of this.#idle) {
      const isUnused = stats.tier === EXCLUDED;
      const firstKept = isUnused
        ? connections.length
        : connections.findIndex(({ idleSince }) => now - idleSince < MAX_IDLE_TICKS);
      const ended = connections.splice(0, firstKept < 0 ? connections.length : firstKept);
      this.#idleCount -= ended.length;
      for (const connection of ended) connection.close();
      if (connections.length === 0) this.#idle.delete(stats);
    }
  }

  close(): void {
    for (const connections of this.#idle.values()) for (const connection of connections) connection.close();
    this.#idle.clear();
    this.#idleCount = 0;
  }
}
