import type { EndpointStats } from '@weir/model/data-plane';
import { EXCLUDED } from '@weir/model/data-plane';
import type { TcpTransport, Window } from '../transport/tcp-transport.ts';
import { type ConnectionsTo, EndpointConnection, type EndpointConnectionOwner } from './endpoint-connection.ts';
import type { EndpointTls } from './endpoint-tls.ts';
import type { EndpointHttp2Connection } from './h2/endpoint-http2-connection.ts';
import { EndpointHttp2Connections } from './h2/endpoint-http2-connections.ts';
import { IdleConnections, MAX_AGE_TICKS } from './idle-connections.ts';
import type { RequestCarrier } from './request-carrier.ts';

/**
 * How many connections to one endpoint one worker may have, idle connections and connections that are being established
 * included. A WebSocket does not count, because the limits of the Service and the tenant bound its connections.
 */
export const MAX_CONNECTIONS_PER_ENDPOINT = 1_024;
/** How many connections to one endpoint may be idle in one worker. */
export const MAX_IDLE_PER_ENDPOINT = 256;
/** How many connections to all endpoints may be idle in one worker, whatever their version of HTTP. */
export const MAX_IDLE = 2_048;
/** How long a connection may be idle, in ticks of the timeout wheel (seconds). Less than most endpoints wait. */
const MAX_IDLE_TICKS = 30;
/**
 * A connection is closed this much earlier than its endpoint says (`Keep-Alive: timeout`). Otherwise the endpoint may close
 * the connection while a request is on its way, and only some requests can be sent again.
 */
const CLOSE_EARLIER_TICKS = 1;
/** How long an endpoint may take to answer FIN with FIN. */
const MAX_CLOSING_TICKS = 2;
/** How many requests one connection carries, so that requests move to new endpoints. */
export const MAX_REQUESTS = 10_000;

interface CarrierOptions {
  readonly window: Window;
  readonly tls: EndpointTls | undefined;
  /** Whether the endpoint gets HTTP/2. */
  readonly isHttp2: boolean;
  /** Whether a connection that has carried another request may carry the request. */
  readonly mayReuse: boolean;
}

/**
 * The connections of one worker to the endpoints of all Services. Each `EndpointStats` belongs to one Service, so Services
 * never share a connection.
 */
export class EndpointConnections implements EndpointConnectionOwner {
  readonly #transport: TcpTransport;
  readonly #byEndpoint = new Map<EndpointStats, ConnectionsTo>();
  /** Connections that wait for the FIN of their endpoints, or have received the FIN since. */
  #closing: EndpointConnection[] = [];
  readonly #idle: IdleConnections;
  #now = 0;
  #isDraining = false;
  readonly #http2: EndpointHttp2Connections;

  constructor(transport: TcpTransport, maxIdle: number = MAX_IDLE) {
    this.#transport = transport;
    this.#idle = new IdleConnections(maxIdle);
    const onHttp1 = (connection: EndpointHttp2Connection): void => this.#adopt(connection);
    this.#http2 = new EndpointHttp2Connections({ transport, idle: this.#idle, onHttp1 });
  }

  get idleCount(): number {
    return this.#idle.count;
  }

  /** Returns what can carry a request to an endpoint; undefined if the endpoint has its maximum number of requests. */
  carrierTo(stats: EndpointStats, { window, tls, isHttp2, mayReuse }: CarrierOptions): RequestCarrier | undefined {
    if (isHttp2) return this.#http2.streamTo(stats, window, tls);
    const idle = mayReuse ? this.takeIdle(stats, tls) : undefined;
    idle?.stream.setWindow?.(window);
    return idle ?? this.open(stats, window, tls);
  }

  /** Keeps the stream of a connection whose endpoint has chosen HTTP/1.1. */
  #adopt({ stats, tls, stream }: EndpointHttp2Connection): void {
    const connections = this.#connectionsTo(stats);
    connections.count += 1;
    const connection = new EndpointConnection(stats, tls, { owner: this, connections });
    connection.openedAt = this.#now;
    connection.stream = stream;
    stream.accept(connection);
    connection.onConnect();
    this.keep(connection);
  }

  /**
   * Returns the connection with this TLS that became idle last, or undefined if there is none. Closes connections with
   * other TLS terms, because these connections were verified with other CAs or another certificate.
   */
  takeIdle(stats: EndpointStats, tls?: EndpointTls): EndpointConnection | undefined {
    const idle = this.#byEndpoint.get(stats)?.idle;
    for (let connection = idle?.pop(); connection !== undefined; connection = idle?.pop()) {
      this.#idle.delete(connection);
      if (connection.tls === tls) return connection;
      connection.close();
    }
    return undefined;
  }

  /** Returns undefined if the endpoint has its maximum number of connections. */
  open(stats: EndpointStats, window: Window, tls?: EndpointTls): EndpointConnection | undefined {
    const connections = this.#connectionsTo(stats);
    if (connections.count >= MAX_CONNECTIONS_PER_ENDPOINT) return undefined;
    connections.count += 1;
    const connection = new EndpointConnection(stats, tls, { owner: this, connections });
    connection.openedAt = this.#now;
    connection.stream =
      tls === undefined
        ? this.#transport.connect(stats.endpoint, connection, window)
        : tls.connect(stats, connection, this.#transport);
    return connection;
  }

  keep(connection: EndpointConnection): void {
    const { stats, requests, openedAt } = connection;
    const { idle } = connection.connections;
    const isFull = idle.length >= MAX_IDLE_PER_ENDPOINT;
    const idleTicks = Math.min(MAX_IDLE_TICKS, connection.endpointIdleSeconds - CLOSE_EARLIER_TICKS);
    const idleUntil = Math.min(this.#now + idleTicks, openedAt + MAX_AGE_TICKS);
    if (isFull || idleUntil <= this.#now || this.#isDraining || requests >= MAX_REQUESTS || stats.tier === EXCLUDED) {
      connection.close();
      return;
    }
    connection.idleUntil = idleUntil;
    idle.push(connection);
    this.#idle.add(connection);
  }

  onConnectionClosing(connection: EndpointConnection): void {
    this.#removeIdle(connection);
    connection.closingSince = this.#now;
    this.#closing.push(connection);
  }

  onConnectionEnd(connection: EndpointConnection): void {
    const { stats, connections } = connection;
    this.#removeIdle(connection);
    connections.count -= 1;
    if (connections.count === 0) this.#byEndpoint.delete(stats);
  }

  /**
   * Closes idle connections that were idle for too long, that are too old, or whose endpoint is not used any more. Must
   * be called once a second.
   */
  tick(now: number): void {
    this.#now = now;
    for (const [stats, { idle }] of this.#byEndpoint) {
      // Backwards, because each close removes the connection from the list.
      for (let index = idle.length - 1; index >= 0; index -= 1) {
        const connection = idle[index] as EndpointConnection;
        if (stats.tier === EXCLUDED || connection.idleUntil <= now) connection.close();
      }
    }
    this.#resetUnanswered(now - MAX_CLOSING_TICKS);
    this.#http2.tick(now);
  }

  /** Closes all idle connections, and keeps none from now on. */
  drain(): void {
    this.#isDraining = true;
    this.#http2.drain();
    for (const { idle } of this.#byEndpoint.values()) for (const connection of [...idle]) connection.close();
  }

  /** Resets connections whose FIN their endpoint has not answered since the tick `oldest`. */
  #resetUnanswered(oldest: number): void {
    const closing = this.#closing;
    this.#closing = [];
    for (const connection of closing) {
      if (connection.closingSince <= oldest) connection.reset();
      else if (!connection.hasEnded) this.#closing.push(connection);
    }
  }

  #removeIdle(connection: EndpointConnection): void {
    if (!this.#idle.delete(connection)) return;
    const { idle } = connection.connections;
    idle.splice(idle.indexOf(connection), 1);
  }

  #connectionsTo(stats: EndpointStats): ConnectionsTo {
    let connections = this.#byEndpoint.get(stats);
    if (connections === undefined) {
      connections = { count: 0, idle: [] };
      this.#byEndpoint.set(stats, connections);
    }
    return connections;
  }
}
