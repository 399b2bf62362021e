import { type Client, type EndpointStats, endpointsSpeakHttp2, recordRequest, takeRetry } from '@weir/model/data-plane';
import type { RelayContext } from '../relay/session.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { CurrentRequest } from './current-request.ts';
import { EndpointAttempts } from './endpoint-attempts.ts';
import { type EndpointTls, endpointTlsOf } from './endpoint-tls.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { isIdempotent, METHOD } from './h1/methods.ts';
import type { Sink } from './message-output.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import type { ResponseHead } from './passes/response-passes.ts';
import type {
  EndpointFailure,
  Exchange,
  FailureDetails,
  RequestBody,
  RequestCarrier,
  ResponseSource,
} from './request-carrier.ts';
import type { RequestOwner } from './request-owner.ts';
import { UnsentBytes } from './unsent-bytes.ts';

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
/** How often a request that HTTP/2 endpoints refuse is sent again. */
const MAX_REFUSALS = 3;

/**
 * Sends a client's requests, one after the other, to endpoints: chooses an endpoint, takes an idle connection or opens a
 * connection, and tries again where that is safe. A new connection has sent nothing before it is connected, so another
 * endpoint can be tried. A reused connection may have ended when the request is sent. Then the request is sent once more if
 * no byte of the request was sent, or if the request is idempotent and has no body (RFC 9110 §9.2.2). A request that an
 * HTTP/2 endpoint refuses is sent again up to `MAX_REFUSALS` times (RFC 9113 §8.7).
 */
export class EndpointRequest implements Exchange, Sink {
  /** The endpoint that the client's sticky cookie names. Set before `begin`. */
  cookieEndpoint: EndpointStats | undefined;
  readonly #owner: RequestOwner;
  #upstream: Upstream;
  readonly #context: RelayContext;
  readonly #attempts: EndpointAttempts;
  #carrier: RequestCarrier | undefined;
  #method: number = METHOD.other;
  #body: RequestBody = 'none';
  /** Whether the request asks for a WebSocket, which HTTP/2 endpoints do not get. */
  #needsHttp1 = false;
  /** How often endpoints have refused the request. */
  #refusals = 0;
  /** The bytes that a new connection sends first. */
  readonly #unsent = new UnsentBytes();
  /** The trailers of a complete body that has no framing. */
  #trailers: Uint8Array | undefined;
  /** How many bytes of the request the carrier has copied. 0 if the copy is not complete, -1 before the first byte. */
  #copiedBytes = -1;
  #isComplete = false;
  /** Whether the endpoint has sent a head, final or not. */
  #hasHead = false;
  /** Whether the endpoint has sent the final head, not only interim ones. */
  #hasAnswered = false;
  #sentAt = Number.NaN;

  constructor(owner: RequestOwner, { context, upstream, client }: EndpointRequestOptions) {
    this.#owner = owner;
    this.#upstream = upstream;
    this.#context = context;
    this.#attempts = new EndpointAttempts(client);
  }

  get source(): ResponseSource | undefined {
    return this.#carrier?.source;
  }

  get stats(): EndpointStats | undefined {
    return this.#carrier?.stats;
  }

  /** When the first bytes of the request were written to the current endpoint, in milliseconds of `Turns.nowMs`. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** How many endpoints were tried for the last request that has begun. */
  get attempts(): number {
    return this.#attempts.count;
  }

  /** The endpoint that was tried last. */
  get lastEndpoint(): EndpointStats | undefined {
    return this.#attempts.last;
  }

  get isConnecting(): boolean {
    return this.#carrier?.isConnected === false;
  }

  /** Returns the line Set-Cookie if the sticky cookie of the client does not name the current endpoint. */
  stickyCookieLine(client: { readonly isHttps: boolean }): Uint8Array | undefined {
    const { stats } = this;
    if (stats === undefined || stats === this.cookieEndpoint) return undefined;
    return this.#upstream.stickyCookie?.lineFor(stats, client);
  }

  /** Sends the next requests to the endpoints of another Service. No request may be open. */
  moveTo(upstream: Upstream): void {
    this.#upstream = upstream;
  }

  /** Begins a request. The owner then sends the head and the body, and calls `complete`. */
  begin({ method, body, isWebSocket }: Pick<CurrentRequest, 'method' | 'body' | 'isWebSocket'>): void {
    this.#method = method;
    this.#body = body;
    this.#needsHttp1 = isWebSocket;
    this.#attempts.begin();
    this.#refusals = 0;
    this.#unsent.set(undefined);
    this.#trailers = undefined;
    this.#copiedBytes = -1;
    this.#isComplete = false;
    this.#hasHead = false;
    this.#hasAnswered = false;
    recordRequest(this.#upstream.service.retryBudget, this.#context.wheel.now);
    this.#connect('no-endpoints', 'first');
  }

  /** Sends a part of the request, or keeps a copy until the connection is established. */
  send(bytes: Uint8Array): void {
    const carrier = this.#carrier;
    if (carrier === undefined) return;
    if (!carrier.isConnected) {
      this.#unsent.append(bytes);
      this.#owner.onEndpointFull();
      return;
    }
    this.#write(carrier, bytes);
  }

  /** Ends a body that `CurrentRequest` does not frame. The trailers are complete lines `name: value` with CRLF. */
  sendEnd(trailers: Uint8Array): void {
    if (this.#body === 'none') return;
    this.#trailers = trailers;
    if (this.#carrier?.isConnected === true) this.#carrier.sendEnd(trailers);
  }

  /** Marks the request as complete. To be called before its last part is sent. */
  complete(): void {
    this.#isComplete = true;
  }

  /** Sends FIN after the bytes of another protocol. */
  shutdown(): void {
    this.#carrier?.shutdown();
  }

  /** Gives up the request. No method of the owner is called any more. */
  cancel(): void {
    this.#releaseCarrier()?.reset();
  }

  /** Tries another endpoint if the current endpoint is not connected yet. */
  onEndpointUnavailable(): void {
    if (!this.isConnecting || !this.#attempts.mayContinue) return;
    if (!this.#attempts.hasUntriedEndpoint(this.#upstream)) return;
    this.#releaseCarrier()?.reset();
    this.#connect('connect-failed', 'move');
  }

  /** Gives up the current endpoint, which is not connected, and tries another. `code` is the errno name, if any. */
  tryNextEndpoint(failure: ErrorReason, code?: string): void {
    const carrier = this.#releaseCarrier();
    if (carrier !== undefined && !isLocalFailure(code)) this.#upstream.onConnectFailed(carrier.stats);
    carrier?.reset();
    if (this.#attempts.mayContinue) this.#connect(failure, 'retry');
    else this.#owner.onRequestFailed(failure);
  }

  onConnected(): void {
    const carrier = this.#carrier;
    if (carrier === undefined) return;
    this.#upstream.onConnected(carrier.stats);
    this.#sendUnsent(carrier);
  }

  onDrain(): void {
    this.#owner.onEndpointReady();
  }

  onResponseHead(head: ResponseHead): number | undefined {
    const { status } = head;
    this.#hasHead = true;
    const options = this.#owner.onResponseHead(head);
    // Another head follows an interim response, unless the response is a 101 (RFC 9110 §15.2).
    if (options === undefined || (status < 200 && status !== SWITCHING_PROTOCOLS)) return options;
    this.#hasAnswered = true;
    const { stats } = this;
    if (stats !== undefined) this.#upstream.onAnswer(stats, isGatewayFailure(status));
    return options;
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    this.#owner.onResponseData(bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void {
    // The connection carries the next request only if this request was sent completely.
    this.#releaseCarrier()?.finish(isReusable && this.#isComplete);
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

  onFailed(failure: EndpointFailure, { errno, resetCode }: FailureDetails): void {
    switch (failure) {
      case 'not-connected':
        this.#context.onConnectError(errno);
        this.tryNextEndpoint('connect-failed', errno);
        return;
      case 'other-version':
        this.#useOtherVersion();
        return;
      case 'refused':
      case 'reset':
      case 'closed':
      case 'incomplete':
        this.#onClosed(failure, resetCode);
        return;
      case 'invalid-response':
        this.#releaseCarrier();
        this.#owner.onRequestFailed('invalid-response');
    }
  }

  onThrow(thrown: unknown): void {
    this.#owner.onThrow(thrown);
  }

  /** Sends the request to the same endpoint over HTTP/1.1, which the endpoint has chosen. */
  #useOtherVersion(): void {
    const carrier = this.#releaseCarrier();
    if (carrier !== undefined) this.#upstream.onConnected(carrier.stats);
    this.#attempts.forgetLast();
    this.#connect('connect-failed', 'first');
  }

  #onClosed(failure: EndpointFailure, resetCode: number | undefined): void {
    const carrier = this.#releaseCarrier();
    if (carrier !== undefined && this.#maySendAgain(carrier, failure)) {
      // The endpoint has not failed, so the same endpoint may get the request on a new connection.
      this.#attempts.forgetLast();
      if (failure === 'refused') this.#refusals += 1;
      this.#unsent.set(carrier.copied(this.#copiedBytes));
      this.#copiedBytes = -1;
      this.#connect('endpoint-failed', 'retry');
      return;
    }
    // An endpoint may close a reused connection at any time, so the end of the connection is no failure of the endpoint.
    const isLate = carrier?.isReused === true && (failure === 'closed' || failure === 'incomplete');
    const saysNothing = isLate || failure === 'refused';
    if (carrier !== undefined && !this.#hasAnswered && !saysNothing) this.#upstream.onAnswer(carrier.stats, true);
    this.#owner.onRequestFailed('endpoint-failed', resetCode);
  }

  /** Whether the request, which has failed without a byte of an answer, may be sent again. */
  #maySendAgain(carrier: RequestCarrier, failure: EndpointFailure): boolean {
    if (this.#hasHead || this.#copiedBytes <= 0) return false;
    // RFC 9113 §8.7: a request on a stream that was refused was not processed and can be repeated.
    if (failure === 'refused') return this.#refusals < MAX_REFUSALS;
    if (failure !== 'closed' || !carrier.isReused) return false;
    // RFC 9110 §9.2.2: a request may be repeated if it is known that the original request was never applied.
    if (carrier.unsentBytes >= this.#copiedBytes) return true;
    // RFC 9110 §9.2.2: otherwise only if the method is idempotent. Not with a body, which the endpoint may have used.
    return this.#body === 'none' && isIdempotent(this.#method);
  }

  /** Connects to an endpoint. `failure` is the reason of the answer if there is no endpoint to try. */
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
      const stats = this.#attempts.choose(this.#upstream, this.cookieEndpoint, reason);
      if (stats === undefined) break;
      if (needsRetry && !takeRetry(this.#upstream.service.retryBudget, this.#context.wheel.now)) {
        reason = 'retry-limit';
        break;
      }
      needsRetry = false;
      this.#attempts.add(stats);
      if (this.#connectTo(stats, tls === 'none' ? undefined : tls, attempt === 'first')) return;
      reason = 'overloaded';
    } while (this.#attempts.mayContinue);
    this.#owner.onRequestFailed(reason);
  }

  /** Takes or opens a connection. Returns false if the endpoint has its maximum number of connections. */
  #connectTo(stats: EndpointStats, tls: EndpointTls | undefined, mayReuse: boolean): boolean {
    const window = this.#owner.currentWindow();
    const offersHttp2 = tls?.offersHttp2To(stats) === true && !this.#needsHttp1;
    const isHttp2 = offersHttp2 || endpointsSpeakHttp2(this.#upstream.route);
    const carrier = this.#context.endpointConnections.carrierTo(stats, { window, tls, isHttp2, mayReuse });
    if (carrier === undefined) return false;
    this.#sentAt = Number.NaN;
    stats.activeConnections += 1;
    this.#carrier = carrier;
    carrier.begin(this, this.#method, this.#body);
    if (!carrier.isConnected) this.#owner.onConnecting();
    else if (this.#unsent.isWaiting) this.#sendUnsent(carrier);
    return true;
  }

  #sendUnsent(carrier: RequestCarrier): void {
    const unsent = this.#unsent.take();
    if (unsent !== undefined) this.#write(carrier, unsent);
    if (this.#trailers !== undefined) carrier.sendEnd(this.#trailers);
    if (!carrier.source.awaitsDrain) this.#owner.onEndpointReady();
  }

  #write(carrier: RequestCarrier, bytes: Uint8Array): void {
    if (Number.isNaN(this.#sentAt)) this.#sentAt = this.#context.transport.turns.nowMs;
    if (this.#copiedBytes !== 0) this.#copiedBytes = carrier.copy(bytes, Math.max(0, this.#copiedBytes));
    carrier.send(bytes);
    if (carrier.source.awaitsDrain) this.#owner.onEndpointFull();
  }

  #releaseCarrier(): RequestCarrier | undefined {
    const carrier = this.#carrier;
    this.#carrier = undefined;
    if (carrier !== undefined) carrier.stats.activeConnections -= 1;
    return carrier;
  }
}

/**
 * Whether the endpoint says with this status that it cannot answer requests now: 502, 503 or 504. A 500 says that one request
 * has failed. A client that repeats such a request must not take an endpoint away from the other clients.
 */
function isGatewayFailure(status: number): boolean {
  return status >= 502 && status <= 504;
}
