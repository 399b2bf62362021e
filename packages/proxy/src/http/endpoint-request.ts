import { type Client, type EndpointStats, EXCLUDED, recordRequest, takeRetry } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { RelayContext } from '../relay/session.ts';
import type { TcpStream, Window } from '../transport/tcp-transport.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import type { EndpointConnection, EndpointFailure, Exchange } from './endpoint-connection.ts';
import { type EndpointTls, endpointTlsOf } from './endpoint-tls.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import type { ResponseHeadParser } from './h1/response-head.ts';
import type { Sink } from './message-output.ts';
import type { ErrorReason } from './passes/error-answer.ts';

/** The session whose requests are sent. */
export interface RequestOwner
  extends Pick<Exchange, 'onResponseHead' | 'onResponseData' | 'onReadEnd' | 'onOtherData'> {
  /** The admission of the request. Its tenant takes turns with others for TLS handshakes. */
  readonly admission: Pick<Admission, 'limiters'>;
  /** The window for a connection. */
  currentWindow(): Window;
  /** Called when the endpoint can take more of the request. */
  onEndpointReady(): void;
  /** Called when the request must not be read any more until `onEndpointReady`. */
  onEndpointFull(): void;
  /** Called before a connection attempt. It may take as long as the connect timeout of the Service. */
  onConnecting(): void;
  onResponseEnd(trailers: HeadFields | undefined): void;
  onOtherEnd(): void;
  /** Called instead of `onResponseEnd`. A part of the response may have been relayed. */
  onRequestFailed(reason: ErrorReason): void;
  onThrow(thrown: unknown): void;
}

export interface EndpointRequestOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly client: Client;
}

/**
 * Why an endpoint is chosen. `retry`: an attempt has failed, so the retry budget of the Service applies. `move`: the
 * endpoint of the last attempt was removed or is unhealthy.
 */
type Attempt = 'first' | 'retry' | 'move';

const SWITCHING_PROTOCOLS = 101;

/**
 * The way of a client's requests, one after the other, to endpoints: chooses an endpoint, takes an idle connection or
 * opens one, and tries again where that is safe. A new connection has sent nothing before it is connected, so another
 * endpoint can be tried. A reused connection may have ended when the request is sent. Then the request is sent once more
 * if no byte of it was sent, or if it is idempotent and has no body (RFC 9110 §9.2.2).
 */
export class EndpointRequest implements Exchange, Sink {
  /** The endpoint that the client's sticky cookie names. Set before `begin`. */
  cookieEndpoint: EndpointStats | undefined;
  readonly #owner: RequestOwner;
  readonly #upstream: Upstream;
  readonly #context: RelayContext;
  readonly #client: Client;
  #connection: EndpointConnection | undefined;
  #method: number = METHOD.other;
  #hasBody = false;
  readonly #triedEndpoints: EndpointStats[] = [];
  #hasTriedExcluded = false;
  /** The bytes that a new connection sends first. */
  #unsent: Uint8Array | undefined;
  #isReused = false;
  /**
   * How many bytes of the request a reused connection has copied when it sent them. 0 if the copy is not complete, -1
   * before the first byte.
   */
  #copiedBytes = -1;
  #isComplete = false;
  /** Whether the endpoint has sent a head, final or not. */
  #hasAnswered = false;
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

  /** How many endpoints were tried for the last request that has begun. */
  get attempts(): number {
    return this.#triedEndpoints.length;
  }

  /** The endpoint that was tried last. */
  get lastEndpoint(): EndpointStats | undefined {
    return this.#triedEndpoints.at(-1);
  }

  get isConnecting(): boolean {
    return this.#connection?.isConnected === false;
  }

  /** Returns the line Set-Cookie if the sticky cookie of the client does not name the present endpoint. */
  stickyCookieLine(client: { readonly isHttps: boolean }): Uint8Array | undefined {
    const { stats } = this;
    if (stats === undefined || stats === this.cookieEndpoint) return undefined;
    return this.#upstream.stickyCookie?.lineFor(stats, client);
  }

  /** Begins a request with this method (`METHOD`). The owner then sends the head and the body, and calls `complete`. */
  begin(method: number, hasBody: boolean): void {
    this.#method = method;
    this.#hasBody = hasBody;
    // Not `length = 0`, because this is a call into the runtime of V8.
    while (this.#triedEndpoints.length > 0) this.#triedEndpoints.pop();
    this.#hasTriedExcluded = false;
    this.#unsent = undefined;
    this.#copiedBytes = -1;
    this.#isComplete = false;
    this.#hasAnswered = false;
    recordRequest(this.#upstream.service.retryBudget, this.#context.wheel.now);
    this.#connect('no-endpoints', 'first');
  }

  /** Sends a part of the request, or keeps a copy until the connection is established. */
  send(bytes: Uint8Array): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    if (!connection.isConnected) {
      this.#unsent = this.#unsent === undefined ? Buffer.from(bytes) : Buffer.concat([this.#unsent, bytes]);
      this.#owner.onEndpointFull();
      return;
    }
    // Only a request that is sent at once can be sent again.
    if (this.#isReused) this.#copiedBytes = this.#copiedBytes < 0 ? connection.copy(bytes) : 0;
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
    this.#releaseConnection()?.reset();
  }

  /** Tries another endpoint if the present one is not connected yet. */
  onEndpointUnavailable(): void {
    if (!this.isConnecting || !this.#mayTryAnother()) return;
    if (!this.#upstream.hasUntriedEndpoint(this.#triedEndpoints)) return;
    this.#releaseConnection()?.reset();
    this.#connect('connect-failed', 'move');
  }

  /** Gives up the present endpoint, which is not connected, and tries another one. `code` is the errno name, if any. */
  tryNextEndpoint(failure: ErrorReason, code?: string): void {
    const connection = this.#releaseConnection();
    if (connection !== undefined && !isLocalFailure(code)) this.#upstream.onConnectFailed(connection.stats);
    connection?.reset();
    if (this.#mayTryAnother()) this.#connect(failure, 'retry');
    else this.#owner.onRequestFailed(failure);
  }

  onConnected(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#upstream.onConnected(connection.stats);
    const unsent = this.#unsent;
    this.#unsent = undefined;
    if (unsent !== undefined) this.#write(connection, unsent);
    if (!connection.stream.awaitsDrain) this.#owner.onEndpointReady();
  }

  onDrain(): void {
    this.#owner.onEndpointReady();
  }

  onResponseHead(head: ResponseHeadParser): number | undefined {
    const { status } = head;
    this.#hasAnswered = true;
    const options = this.#owner.onResponseHead(head);
    // Another head follows all other interim responses (RFC 9110 §15.2).
    if (options === undefined || (status < 200 && status !== SWITCHING_PROTOCOLS)) return options;
    const { stats } = this;
    if (stats !== undefined) this.#upstream.onAnswer(stats, isGatewayFailure(status));
    return options;
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    this.#owner.onResponseData(bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void {
    const connection = this.#releaseConnection();
    // The connection carries the next request only if this request was sent completely.
    if (isReusable && this.#isComplete && connection?.stream.awaitsDrain === false)
      this.#context.endpointConnections.keep(connection);
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
    switch (failure) {
      case 'not-connected':
        this.#context.onConnectError(code);
        this.tryNextEndpoint('connect-failed', code);
        return;
      case 'closed':
      case 'cut-off':
        this.#onClosed(failure);
        return;
      case 'invalid-response':
        this.#releaseConnection();
        this.#owner.onRequestFailed('invalid-response');
    }
  }

  onThrow(thrown: unknown): void {
    this.#owner.onThrow(thrown);
  }

  #onClosed(failure: 'closed' | 'cut-off'): void {
    const connection = this.#releaseConnection();
    if (connection !== undefined && failure === 'closed' && this.#maySendAgain(connection)) {
      // The endpoint has not refused the request, so the same endpoint may get it on a new connection.
      this.#triedEndpoints.pop();
      this.#unsent = connection.copied(this.#copiedBytes);
      this.#connect('endpoint-failed', 'retry');
      return;
    }
    // An endpoint may close a reused connection at any time, so that says nothing about the endpoint.
    if (connection !== undefined && !this.#hasAnswered && !this.#isReused)
      this.#upstream.onAnswer(connection.stats, true);
    this.#owner.onRequestFailed('endpoint-failed');
  }

  /** Whether the request, whose reused connection has ended without a byte of an answer, may be sent once more. */
  #maySendAgain({ stream }: EndpointConnection): boolean {
    if (!this.#isReused || this.#hasAnswered || this.#copiedBytes <= 0) return false;
    // RFC 9110 §9.2.2: a request may be repeated if it is known that the original request was never applied.
    if (stream.queuedBytes >= this.#copiedBytes) return true;
    // RFC 9110 §9.2.2: otherwise only if its method is idempotent. A body that was sent is never sent again.
    return !this.#hasBody && IDEMPOTENT_METHODS.has(this.#method);
  }

  /** Connects to an endpoint. `failure` is the reason of the answer if there is none to try. */
  #connect(failure: ErrorReason, attempt: Attempt): void {
    const tls = endpointTlsOf(this.#upstream, this.#context, this.#owner.admission.limiters.tenant);
    // Without the CAs, no endpoint can be verified. Without the certificate, endpoints would refuse the handshake.
    if (tls === 'missing') {
      this.#owner.onRequestFailed('endpoint-failed');
      return;
    }
    let reason = failure;
    let needsRetry = attempt === 'retry';
    do {
      const stats = this.#choose() ?? this.#chooseExcluded(reason);
      if (stats === undefined) break;
      if (needsRetry && !takeRetry(this.#upstream.service.retryBudget, this.#context.wheel.now)) {
        reason = 'retry-limit';
        break;
      }
      needsRetry = false;
      this.#triedEndpoints.push(stats);
      if (this.#connectTo(stats, tls === 'none' ? undefined : tls, attempt === 'first')) return;
      reason = 'overloaded';
    } while (this.#mayTryAnother());
    this.#owner.onRequestFailed(reason);
  }

  /** Takes or opens a connection. Returns false if the endpoint has its maximum number of connections. */
  #connectTo(stats: EndpointStats, tls: EndpointTls | undefined, mayReuse: boolean): boolean {
    const { endpointConnections } = this.#context;
    const window = this.#owner.currentWindow();
    const idle = mayReuse ? endpointConnections.takeIdle(stats, tls) : undefined;
    const connection = idle ?? endpointConnections.open(stats, window, tls);
    if (connection === undefined) return false;
    idle?.stream.setWindow?.(window);
    this.#sentAt = Number.NaN;
    stats.activeConnections += 1;
    this.#isReused = idle !== undefined;
    this.#connection = connection;
    connection.begin(this, this.#method);
    if (idle === undefined) this.#owner.onConnecting();
    return true;
  }

  /** Returns the endpoint of the client's cookie unless it is excluded or was tried, otherwise another endpoint. */
  #choose(): EndpointStats | undefined {
    const { cookieEndpoint } = this;
    if (cookieEndpoint !== undefined && cookieEndpoint.tier !== EXCLUDED && this.#triedEndpoints.length === 0)
      return cookieEndpoint;
    return this.#upstream.choose(this.#client, this.#triedEndpoints);
  }

  /**
   * Returns one excluded endpoint per request, because an endpoint may have been excluded by mistake. Returns none if the
   * other endpoints have too many connections, because they work.
   */
  #chooseExcluded(reason: ErrorReason): EndpointStats | undefined {
    if (this.#hasTriedExcluded || reason === 'overloaded') return undefined;
    this.#hasTriedExcluded = true;
    return this.#upstream.chooseExcluded(this.#triedEndpoints);
  }

  #mayTryAnother(): boolean {
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

/** RFC 9110 §9.2.2. */
const IDEMPOTENT_METHODS: ReadonlySet<number> = new Set([
  METHOD.get,
  METHOD.head,
  METHOD.put,
  METHOD.delete,
  METHOD.options,
  METHOD.trace,
]);

/** Whether the endpoint says with this status that it cannot answer requests now: 502, 503 or 504. */
function isGatewayFailure(status: number): boolean {
  return status >= 502 && status <= 504;
}
