import type { Client, EndpointStats } from '@weir/model/data-plane';
import type { RelayContext } from '../relay/session.ts';
import type { TcpStream, Window } from '../transport/tcp-transport.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import type { EndpointConnection, EndpointFailure, Exchange } from './endpoint-connection.ts';
import { endpointTlsOf } from './endpoint-tls.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import type { ResponseHeadParser } from './h1/response-head.ts';
import type { Sink } from './message-output.ts';
import type { ErrorReason } from './passes/error-answer.ts';

/** The session whose requests are sent. */
export interface RequestOwner
  extends Pick<Exchange, 'onResponseHead' | 'onResponseData' | 'onReadEnd' | 'onOtherData'> {
  /** The window for a new connection. */
  currentWindow(): Window;
  /** Called when the endpoint can take more of the request. */
  onEndpointReady(): void;
  /** Called when the request must not be read any more until `onEndpointReady`. */
  onEndpointFull(): void;
  /** Called before a connection attempt. It may take as long as the connect timeout of the Service. */
  onConnecting(): void;
  onResponseEnd(trailers: HeadFields | undefined): void;
  onOtherEnd(): void;
  /** Called instead of `onResponseEnd`. `hasResponse`: a part of the response was relayed. */
  onRequestFailed(reason: ErrorReason, hasResponse: boolean): void;
  onThrow(thrown: unknown): void;
}

export interface EndpointRequestOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly client: Client;
}

/**
 * The way of a client's requests, one after the other, to endpoints: chooses an endpoint, takes an idle connection or
 * opens one, and tries again where that is safe. A new connection has sent nothing before it is connected, so another
 * endpoint can be tried. A reused connection may have ended when the request is sent; then the request is sent once more
 * if it is idempotent and complete (RFC 9110 §9.2.2).
 */
export class EndpointRequest implements Exchange, Sink {
  readonly #owner: RequestOwner;
  readonly #upstream: Upstream;
  readonly #context: RelayContext;
  readonly #client: Client;
  #connection: EndpointConnection | undefined;
  #method: number = METHOD.other;
  readonly #triedEndpoints: EndpointStats[] = [];
  #hasTriedExcluded = false;
  /** The bytes that a new connection sends first, and that a reused connection may have to send again. */
  #unsent: Uint8Array | undefined;
  #isReused = false;
  #isComplete = false;
  #hasResponse = false;
  #sentAt = Number.NaN;

  constructor(owner: RequestOwner, { context, upstream, client }: EndpointRequestOptions) {
    this.#owner = owner;
    this.#upstream = upstream;
    this.#context = context;
    this.#client = client;
  }

  get stream(): TcpStream | undefined {
    return this.#connection?.stream;
  }

  get stats(): EndpointStats | undefined {
    return this.#connection?.stats;
  }

  /** When the first bytes of the request were written to the present endpoint, in milliseconds of `Turns.nowMs`. */
  get sentAt(): number {
    return this.#sentAt;
  }

  get isConnecting(): boolean {
    return this.#connection?.isConnected === false;
  }

  /** Begins a request with this method (`METHOD`). The owner then sends the head and the body, and calls `complete`. */
  begin(method: number): void {
    this.#method = method;
    this.#triedEndpoints.length = 0;
    this.#hasTriedExcluded = false;
    this.#unsent = undefined;
    this.#isComplete = false;
    this.#hasResponse = false;
    this.#connect('no-endpoint', true);
  }

  /** Sends a part of the request, or keeps a copy until the connection is established. */
  send(bytes: Uint8Array): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    if (!connection.isConnected) {
      this.#unsent = this.#unsent === undefined ? bytes.slice() : Buffer.concat([this.#unsent, bytes]);
      this.#owner.onEndpointFull();
      return;
    }
    // Only a request that is sent at once can be sent again.
    this.#unsent = this.#isReused && this.#unsent === undefined ? bytes.slice() : NOTHING;
    this.#write(connection, bytes);
  }

  /** Marks the request as complete. To be called before its last part is sent. */
  complete(): void {
    this.#isComplete = true;
  }

  /** Sends FIN after the bytes of another protocol. */
  shutdown(): void {
    this.#connection?.stream.shutdown();
  }

  /** Gives up the request. No method of the owner is called any more. */
  cancel(): void {
    const connection = this.#releaseConnection();
    connection?.reset();
  }

  /** Tries another endpoint if the present one is not connected yet. */
  onEndpointUnavailable(): void {
    if (this.isConnecting && this.#mayRetry() && this.#upstream.hasUntriedEndpoint(this.#triedEndpoints))
      this.tryNextEndpoint('endpoint-failed');
  }

  /** Gives up the present endpoint, which is not connected, and tries another one. */
  tryNextEndpoint(failure: ErrorReason, code?: string): void {
    const connection = this.#releaseConnection();
    if (connection !== undefined && !isLocalFailure(code)) this.#upstream.onConnectFailed(connection.stats);
    connection?.reset();
    if (this.#mayRetry()) this.#connect(failure, false);
    else this.#owner.onRequestFailed(failure, false);
  }

  onConnected(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#upstream.onConnected(connection.stats);
    const unsent = this.#unsent;
    this.#unsent = NOTHING;
    if (unsent !== undefined) this.#write(connection, unsent);
    if (!connection.stream.awaitsDrain) this.#owner.onEndpointReady();
  }

  onDrain(): void {
    this.#owner.onEndpointReady();
  }

  onResponseHead(head: ResponseHeadParser): number | undefined {
    this.#hasResponse = true;
    this.#unsent = NOTHING;
    return this.#owner.onResponseHead(head);
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    this.#owner.onResponseData(bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void {
    const connection = this.#releaseConnection();
    // The connection carries the next request only if this request was sent completely.
    if (isReusable && this.#isComplete && connection?.stream.awaitsDrain === false)
      this.#context.endpointConnections.keep(connection, this.#context.wheel.now);
    else connection?.close();
    this.#owner.onResponseEnd(trailers);
  }

  onReadEnd(): void {
    this.#owner.onReadEnd();
  }

  onOtherData(bytes: Uint8Array): void {
    this.#owner.onOtherData(bytes);
  }

  onOtherEnd(): void {
    this.#owner.onOtherEnd();
  }

  onFailed(failure: EndpointFailure, code: string | undefined): void {
    if (failure === 'not-connected') {
      this.#context.onConnectError(code);
      this.tryNextEndpoint('endpoint-failed', code);
      return;
    }
    this.#releaseConnection();
    if (failure === 'closed' && this.#maySendAgain) this.#connect('endpoint-failed', false);
    else {
      const reason = failure === 'closed' ? 'endpoint-failed' : 'invalid-response';
      this.#owner.onRequestFailed(reason, this.#hasResponse);
    }
  }

  onThrow(thrown: unknown): void {
    this.#owner.onThrow(thrown);
  }

  /** Whether a reused connection has ended without an answer, and a second execution of the request does no harm. */
  get #maySendAgain(): boolean {
    const isKept = this.#unsent !== undefined && this.#unsent !== NOTHING;
    return this.#isReused && isKept && this.#isComplete && !this.#hasResponse && IDEMPOTENT_METHODS.has(this.#method);
  }

  /** Connects to an endpoint. `failure` is the reason if there is none to try. */
  #connect(failure: ErrorReason, mayReuse: boolean): void {
    const endpointTls = endpointTlsOf(this.#upstream);
    const stats = this.#upstream.choose(this.#client, this.#triedEndpoints) ?? this.#chooseExcluded();
    if (stats === undefined || endpointTls === 'missing') {
      this.#owner.onRequestFailed(failure, false);
      return;
    }
    this.#triedEndpoints.push(stats);
    this.#sentAt = Number.NaN;
    stats.activeConnections += 1;
    const { endpointConnections } = this.#context;
    const tls = endpointTls === 'none' ? undefined : endpointTls;
    const idle = mayReuse ? endpointConnections.takeIdle(stats, tls) : undefined;
    this.#isReused = idle !== undefined;
    this.#connection = idle ?? endpointConnections.open(stats, this.#owner.currentWindow(), tls);
    this.#connection.begin(this, this.#method);
    if (idle === undefined) this.#owner.onConnecting();
  }

  /** Returns one excluded endpoint per request, because an endpoint may have been excluded by mistake. */
  #chooseExcluded(): EndpointStats | undefined {
    if (this.#hasTriedExcluded) return undefined;
    this.#hasTriedExcluded = true;
    return this.#upstream.chooseExcluded(this.#triedEndpoints);
  }

  #mayRetry(): boolean {
    return this.#triedEndpoints.length < MAX_ENDPOINT_ATTEMPTS;
  }

  #write(connection: EndpointConnection, bytes: Uint8Array): void {
    if (Number.isNaN(this.#sentAt)) this.#sentAt = this.#context.transport.turns.nowMs;
    connection.stream.write(bytes);
    if (connection.stream.awaitsDrain) this.#owner.onEndpointFull();
  }

  #releaseConnection(): EndpointConnection | undefined {
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) connection.stats.activeConnections -= 1;
    return connection;
  }
}

/** In place of bytes that must not be sent again. */
const NOTHING: Uint8Array = new Uint8Array(0);
/** RFC 9110 §9.2.2. */
const IDEMPOTENT_METHODS: ReadonlySet<number> = new Set([
  METHOD.get,
  METHOD.head,
  METHOD.put,
  METHOD.delete,
  METHOD.options,
  METHOD.trace,
]);
