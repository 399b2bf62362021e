import { type EndpointStats, EXCLUDED } from '@weir/model/data-plane';
import type { TcpTransport, Window } from '../../transport/tcp-transport.ts';
import type { EndpointTls } from '../endpoint-tls.ts';
import { type IdleConnections, MAX_AGE_TICKS } from '../idle-connections.ts';
import { EndpointHttp2Connection, type EndpointHttp2ConnectionOwner } from './endpoint-http2-connection.ts';
import type { EndpointStream } from './endpoint-stream.ts';

/** How many connections to one endpoint one worker may have. Each carries as many requests as the endpoint allows. */
export const MAX_HTTP2_CONNECTIONS_PER_ENDPOINT = 8;
/** How long a connection may have no request, in ticks of the timeout wheel (seconds). */
const MAX_IDLE_TICKS = 30;
/** How long an endpoint may take to answer FIN with FIN. */
const MAX_CLOSING_TICKS = 2;

interface EndpointHttp2ConnectionsOptions {
  readonly transport: TcpTransport;
  /** The idle connections of the worker. */
  readonly idle: IdleConnections;
  /** Gets the connections whose endpoints have chosen HTTP/1.1. */
  onHttp1(connection: EndpointHttp2Connection): void;
}

/**
 * The HTTP/2 connections of one worker to the endpoints of all Services. Each `EndpointStats` belongs to one Service, so
 * Services never share a connection.
 */
export class EndpointHttp2Connections implements EndpointHttp2ConnectionOwner {
  readonly #transport: TcpTransport;
  readonly #idle: IdleConnections;
  /** The connections that are not closing. */
  readonly #byEndpoint = new Map<EndpointStats, EndpointHttp2Connection[]>();
  readonly #closing = new Set<EndpointHttp2Connection>();
  readonly onHttp1: (connection: EndpointHttp2Connection) => void;
  #now = 0;
  #isDraining = false;

  constructor({ transport, idle, onHttp1 }: EndpointHttp2ConnectionsOptions) {
    this.#transport = transport;
    this.#idle = idle;
    this.onHttp1 = onHttp1;
  }

  /**
   * Returns a stream to an endpoint; undefined if all connections that the endpoint may have are full. Closes connections
   * with other TLS terms, because these connections were verified with other CAs or another certificate.
   */
  streamTo(stats: EndpointStats, window: Window, tls: EndpointTls | undefined): EndpointStream | undefined {
    const connections = this.#connectionsTo(stats);
    let hasOtherTls = false;
    for (const connection of connections) {
      const stream = connection.tls === tls ? connection.reserve(window) : undefined;
      if (stream !== undefined) {
        this.#idle.delete(connection);
        return stream;
      }
      hasOtherTls ||= connection.tls !== tls;
    }
    if (hasOtherTls) for (const connection of [...connections]) if (connection.tls !== tls) connection.close();
    if (connections.length >= MAX_HTTP2_CONNECTIONS_PER_ENDPOINT) return undefined;
    const connection = new EndpointHttp2Connection(stats, { transport: this.#transport, window, tls, owner: this });
    connection.openedAt = this.#now;
    // Not `connections`: the list may have been removed with its last connection.
    this.#connectionsTo(stats).push(connection);
    return connection.reserve(window);
  }

  onConnectionIdle(connection: EndpointHttp2Connection): void {
    const isOld = connection.openedAt <= this.#now - MAX_AGE_TICKS;
    if (isOld || this.#isDraining || connection.stats.tier === EXCLUDED) {
      connection.close();
      return;
    }
    if (connection.isListed) return;
    connection.idleSince = this.#now;
    this.#idle.add(connection);
  }

  onConnectionClosing(connection: EndpointHttp2Connection): void {
    this.#remove(connection);
    connection.idleSince = this.#now;
    this.#closing.add(connection);
  }

  onConnectionEnd(connection: EndpointHttp2Connection): void {
    this.#remove(connection);
    this.#closing.delete(connection);
  }

  /**
   * Closes connections that were idle for too long, that are idle and too old, or whose endpoint is not used any more.
   * Must be called once a second.
   */
  tick(now: number): void {
    this.#now = now;
    for (const [stats, connections] of this.#byEndpoint) {
      // Copies, because each close removes the connection from the list.
      for (const connection of [...connections]) {
        const { openedAt, idleSince, isListed } = connection;
        // A connection with requests stays until they end, because further connections to the endpoint are limited.
        const isOver = isListed && (idleSince <= now - MAX_IDLE_TICKS || openedAt <= now - MAX_AGE_TICKS);
        if (isOver || stats.tier === EXCLUDED) connection.close();
      }
    }
    for (const connection of this.#closing) if (connection.idleSince <= now - MAX_CLOSING_TICKS) connection.reset();
  }

  /** Closes all connections without a request, and from now on each connection that has no request any more. */
  drain(): void {
    this.#isDraining = true;
    for (const connections of [...this.#byEndpoint.values()])
      for (const connection of [...connections]) if (connection.isIdle) connection.close();
  }

  #connectionsTo(stats: EndpointStats): EndpointHttp2Connection[] {
    let connections = this.#byEndpoint.get(stats);
    if (connections === undefined) {
      connections = [];
      this.#byEndpoint.set(stats, connections);
    }
    return connections;
  }

  #remove(connection: EndpointHttp2Connection): void {
    const { stats } = connection;
    this.#idle.delete(connection);
    const connections = this.#byEndpoint.get(stats);
    const index = connections?.indexOf(connection) ?? -1;
    if (connections === undefined || index < 0) return;
    connections.splice(index, 1);
    if (connections.length === 0) this.#byEndpoint.delete(stats);
  }
}
