// Relays the HTTP/1.1 requests of one client connection. The path of a request:
// 1. `MessageReader` finds its head and its body in the bytes of the client.
// 2. The request passes (passes/request-passes.ts) decide which head the endpoint receives.
// 3. `EndpointRequest` chooses an endpoint, sends the request, and tries again where that is safe.
// 4. `EndpointConnection` reads the response, and the response passes decide which head the client receives.
import type { EndpointStats } from '@weir/model/data-plane';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { type AnswerReason, CurrentRequest, type RequestConnection, SWITCHING_PROTOCOLS } from './current-request.ts';
import { EndpointRequest } from './endpoint-request.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import type { RequestHeadParser } from './h1/request-head.ts';
import { isPartOfPreface, startsWithPreface } from './h2/protocol.ts';
import { HttpConnection } from './http-connection.ts';
import type { HttpConnectionOptions } from './http-connection-options.ts';
import { flush } from './message-output.ts';
import { type MessageHandler, type MessageReader, type MessageRefusal, requestReader } from './message-reader.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import type { ResponseHead } from './passes/response-passes.ts';
import { reasonForRefusal } from './refusal-reason.ts';
import type { ResponseSource } from './request-carrier.ts';
import type { RequestOwner } from './request-owner.ts';
import { HEAD_TIMEOUT_MS, KEEP_ALIVE_MS, LINGER_MS } from './request-timeouts.ts';
import type { Phase } from './session-phase.ts';
import { output } from './worker-memory.ts';

export class HttpSession
  extends HttpConnection
  implements RequestOwner, RequestConnection, MessageHandler<RequestHeadParser>
{
  readonly #reader: MessageReader<RequestHeadParser> = requestReader();
  readonly #request: EndpointRequest;
  readonly #current = new CurrentRequest(this);
  #phase: Phase = 'head';
  /** Bytes of the next request that arrived before the response was complete. At most one read. */
  #nextRequest: Uint8Array | undefined;
  #hasClientEnded = false;
  /** Whether the connection has not carried an answer yet. */
  isFirstRequest = true;
  /** Why the proxy answers a request without a body. Sent at the end of the request, to keep the connection open. */
  #answerAtEnd: ErrorReason | 'redirect' | undefined;
  /** The first bytes of the connection, if they are too few to tell HTTP/2 from HTTP/1.1. */
  #firstBytes: Uint8Array | undefined;
  /** How many bytes of the current message are not counted yet, because its head is incomplete. */
  #messageBytes = 0;
  /** Where the current message begins in the bytes of its parser. */
  #messageStart = 0;

  constructor(client: TcpStream, info: DownstreamInfo, options: HttpConnectionOptions) {
    super(client, info, options);
    const { context, upstream } = options;
    this.#request = new EndpointRequest(this, { context, upstream, client: info.client });
  }

  protected override get endpointStream(): ResponseSource | undefined {
    return this.#request.source;
  }

  protected override get hasRequest(): boolean {
    return this.isPaced || (this.#phase !== 'head' && this.#phase !== 'linger');
  }

  protected override get canTakeInput(): boolean {
    if (this.#nextRequest !== undefined || this.isPaced) return false;
    return !this.#request.isConnecting && this.#request.source?.awaitsDrain !== true;
  }

  protected override get awaitsRequest(): boolean {
    return this.#phase === 'head';
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#request.stats;
  }

  protected override onTimeout(): void {
    const { hasResponse } = this.#current;
    if (this.#phase === 'head') this.#onHeadTimeout();
    else if (this.timeouts.hasRequestTimedOut && hasResponse) this.end('response-timeout');
    else if (this.timeouts.hasRequestTimedOut) this.#answer('endpoint-timeout');
    else if (this.#request.isConnecting) this.#request.tryNextEndpoint('connect-timeout');
    else if (this.extendIfThrottled()) return;
    else if (this.#phase === 'linger' || hasResponse) this.end('idle-timeout');
    // RFC 9110 §15.5.9: the client was too slow, unless the endpoint does not take the body.
    else this.#answer(this.#phase === 'body' && this.canTakeInput ? 'request-timeout' : 'endpoint-timeout');
  }

  #onHeadTimeout(): void {
    if (this.extendIfThrottled()) return;
    if (!this.#reader.isInHead && this.#firstBytes === undefined) this.#linger();
    else {
      this.#current.beginInvalid();
      this.#answer('request-timeout');
    }
  }

  protected override cancelRequest(): void {
    this.#current.abandon();
    this.#request.cancel();
  }

  onEndpointUnavailable(): void {
    if (!this.isEnded) this.guarded(() => this.#request.onEndpointUnavailable());
  }

  onWorkerDrain(): void {
    // The first request of a connection is answered, because clients do not expect that a new connection ends.
    if (this.isEnded || this.isFirstRequest || this.#phase !== 'head' || this.#reader.isInHead) return;
    if (this.isWaiting || this.isPaced) return;
    const { drainIdleMs } = this.context;
    if (drainIdleMs === 0) this.#linger();
    // RFC 9112 §9.5: a client may send a request while the FIN is on its way, so active clients learn of the end from a
    // response.
    else this.timeouts.set(drainIdleMs);
  }

  onEnd(): void {
    if (this.isEnded) return;
    this.#hasClientEnded = true;
    switch (this.#phase) {
      case 'head':
      case 'linger':
        if (this.#nextRequest === undefined) this.client.shutdown();
        return;
      case 'body':
        // RFC 9112 §8: the request is not complete, and the endpoint must not take it for complete.
        this.end('reset-by-client');
        return;
      case 'response':
        return;
      case 'other':
        this.#request.shutdown();
    }
  }

  // The request, in the order of its parts.

  protected override read(received: Uint8Array): void {
    const bytes = this.#firstBytes === undefined ? received : Buffer.concat([this.#firstBytes, received]);
    this.#firstBytes = undefined;
    let at = 0;
    while (at < bytes.length && !this.isEnded && this.#phase !== 'linger') {
      if (this.#phase === 'response' || this.isPaced) {
        this.#keepForNextRequest(bytes, at);
        return;
      }
      if (this.#phase === 'other') {
        this.extendIdleDeadline();
        this.countReceived(bytes.length - at);
        this.#request.send(at === 0 ? bytes : bytes.subarray(at));
        return;
      }
      if (this.#mayStartHttp2() && startsWithPreface(bytes)) {
        this.startHttp2(new Uint8Array(bytes));
        return;
      }
      if (at === 0 && this.#mayStartHttp2() && isPartOfPreface(bytes)) {
        this.#firstBytes = new Uint8Array(bytes);
        return;
      }
      const wasInHead = this.#reader.isInHead;
      const start = at;
      if (this.#phase === 'head' && !wasInHead)
        this.timeouts.startRequest(this.upstream.route.settings.requestTimeoutMs);
      this.#messageStart = wasInHead ? 0 : start;
      this.hasUncountedBytes = true;
      at = this.#reader.read(bytes, start, this);
      this.hasUncountedBytes = false;
      if (this.isEnded) return;
      this.#countMessage(at - start);
      // Until the first byte of the head, the deadline was that of an idle connection.
      if (this.#reader.isInHead && !wasInHead) this.timeouts.set(HEAD_TIMEOUT_MS);
      flush(this.#request);
    }
  }

  onHead(head: RequestHeadParser): 'body' {
    const routed = this.options.router.route(head, this);
    if (typeof routed !== 'string') routed.refusal = this.#moveIfAdmitted(routed.upstream, head);
    this.countConnection();
    this.#phase = 'body';
    const reason = this.#current.begin(head, routed);
    this.timeouts.limitRequest(this.#current.timeoutMs);
    this.timeouts.startIdle();
    this.#request.cookieEndpoint = this.#current.cookieEndpoint;
    if (this.#current.isForConnection) this.beginLog(head, reason === undefined ? this.#request : undefined);
    if (reason === 'https-redirect') this.#redirect(head);
    else if (reason !== undefined) this.#failRequest(reason);
    else {
      this.#request.begin(this.#current);
      this.pauseIfThrottled();
    }
    return 'body';
  }

  /** Moves the connection to the Service of its next request. Returns why this Service refuses the connection, if it does. */
  #moveIfAdmitted(upstream: Upstream, { methodStart }: RequestHeadParser): ErrorReason | undefined {
    if (upstream === this.upstream) return undefined;
    const admission = this.options.admitTo(upstream, this.info, this.admission);
    if (typeof admission === 'string') return admission;
    // RFC 9112 §2.2: an empty line before the request belongs to the previous request.
    const emptyLineBytes = methodStart - this.#messageStart;
    this.countReceived(emptyLineBytes);
    this.#messageBytes -= emptyLineBytes;
    this.moveTo(upstream, admission);
    this.#request.moveTo(upstream);
    this.timeouts.startRequest(upstream.route.settings.requestTimeoutMs);
    return undefined;
  }

  /** Whether the next bytes may begin the HTTP/2 preface, because they are the first bytes of the connection. */
  #mayStartHttp2(): boolean {
    // RFC 9113 §3.2: over TLS, a client speaks HTTP/2 only if ALPN has chosen `h2`.
    return this.info.tls === undefined && this.isFirstRequest && this.#phase === 'head' && !this.#reader.isInHead;
  }

  /** Counts bytes of a message once its head is complete, because the Service is not known before. */
  #countMessage(bytes: number): void {
    this.#messageBytes += bytes;
    if (this.#reader.isInHead) return;
    this.countReceived(this.#messageBytes);
    this.#messageBytes = 0;
  }

  onBodyData(bytes: Uint8Array, start: number, end: number): void {
    this.extendIdleDeadline();
    const refusal = this.#current.writeRequestData(this.#request, bytes, start, end);
    if (refusal !== undefined) this.onRequestFailed(refusal);
  }

  onMessageEnd(trailers: HeadFields | undefined): void {
    this.#current.writeRequestEnd(this.#request, trailers);
    this.#phase = 'response';
    const reason = this.#answerAtEnd;
    this.#answerAtEnd = undefined;
    if (reason === undefined) this.#request.complete();
    else this.#answer(reason);
  }

  onRefusal(refusal: MessageRefusal): void {
    output.at = 0;
    if (this.#phase === 'head') this.#current.beginInvalid();
    this.#failRequest(reasonForRefusal(refusal));
  }

  onConnecting(): void {
    this.timeouts.set(this.upstream.route.settings.connectTimeoutMs);
  }

  onEndpointReady(): void {
    if (this.isEnded) return;
    this.extendIdleDeadline();
    this.pauseIfThrottled();
    if (this.canTakeInput) this.readClient();
  }

  onEndpointFull(): void {
    this.pause(this.client);
  }

  // The response, in the order of its parts.

  onResponseHead(head: ResponseHead): number | undefined {
    this.extendIdleDeadline();
    const { isDraining } = this.context;
    // If the endpoint answers before the request is complete, nobody reads the rest of the request.
    const closes = isDraining || this.#phase === 'body';
    const { sentAt } = this.#request;
    const stickyCookieLine = this.#request.stickyCookieLine(this.#current);
    const options = this.#current.writeResponseHead(this, head, { sentAt, closes, stickyCookieLine });
    if (options !== undefined && head.status === SWITCHING_PROTOCOLS) this.#startOtherProtocol();
    return options;
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    this.#current.writeResponseData(this, bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined): void {
    if (this.isEnded) return;
    this.#current.writeResponseEnd(this, trailers);
    this.#endRequest();
  }

  override onReadEnd(): void {
    flush(this);
    super.onReadEnd();
  }

  onOtherData(bytes: Uint8Array): void {
    flush(this);
    this.send(bytes);
  }

  onOtherEnd(): void {
    this.client.shutdown();
  }

  onRequestFailed(reason: ErrorReason): void {
    output.at = 0;
    if (!this.isEnded) this.#failRequest(reason);
  }

  // What follows a request.

  /** Ends the request with an answer of the proxy, or with RST if the client has received a part of a response. */
  #failRequest(reason: ErrorReason | 'redirect'): void {
    const { hasResponse, hasBody } = this.#current;
    if (hasResponse) this.end('reset-by-endpoint');
    else if (this.#phase === 'body' && !hasBody) this.#answerAtEnd = reason;
    else this.#answer(reason);
  }

  #answer(reason: ErrorReason | 'redirect'): void {
    this.#request.cancel();
    if (this.#phase === 'head') this.beginLog(undefined, undefined);
    this.#current.writeAnswer(reason, this.#phase !== 'response' || this.context.isDraining);
    this.#endRequest(reason);
  }

  /** Answers with a redirect to HTTPS. The connection ends, because the client continues at another port. */
  #redirect(head: RequestHeadParser): void {
    if (!this.#current.writeRedirect(head)) this.#answer('invalid-request');
    else this.#endRequest('https-redirect');
  }

  #endRequest(reason?: AnswerReason): void {
    flush(this);
    if (this.isEnded) return;
    this.completeLog(reason);
    this.paceAfterResponse();
    if (this.#current.closesAfterResponse || this.#phase === 'body') this.#linger();
    else this.#startNextRequest();
  }

  #startNextRequest(): void {
    this.#phase = 'head';
    this.isFirstRequest = false;
    this.#reader.next(METHOD.other);
    this.timeouts.endRequest();
    if (this.isPaced) this.timeouts.startIdle();
    else this.readNextRequests();
  }

  protected override readNextRequests(): void {
    this.timeouts.set(KEEP_ALIVE_MS);
    if (this.#nextRequest === undefined || this.requestTurns.tryTake(this)) this.#readNextRequest();
  }

  override onTurn(): void {
    if (this.#nextRequest === undefined) super.onTurn();
    else this.guarded(() => this.#readNextRequest());
  }

  #readNextRequest(): void {
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (bytes !== undefined) this.read(bytes);
    if (this.isEnded || this.#nextRequest !== undefined) return;
    // RFC 9112 §9.6: a client that has sent FIN still reads the responses to the requests before.
    if (this.#hasClientEnded && (this.#phase === 'head' || this.#phase === 'body')) this.#linger();
    // The client is not read while its request waits for a connection to an endpoint.
    else if (this.canTakeInput) this.readClient();
    if (this.context.isDraining) this.onWorkerDrain();
  }

  /** Keeps bytes that follow a request, and reads nothing more until the response of this request is complete. */
  #keepForNextRequest(bytes: Uint8Array, at: number): void {
    const rest = bytes.subarray(at);
    this.#nextRequest =
      this.#nextRequest === undefined ? new Uint8Array(rest) : Buffer.concat([this.#nextRequest, rest]);
    this.client.readStop();
  }

  #startOtherProtocol(): void {
    this.#phase = 'other';
    this.timeouts.endRequest();
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (bytes !== undefined) this.#request.send(bytes);
    this.readClient();
  }

  /** Sends FIN, and discards what the client still sends. */
  #linger(): void {
    this.#phase = 'linger';
    this.isPaced = false;
    this.#reader.stop();
    this.#request.cancel();
    this.#nextRequest = undefined;
    this.client.shutdown();
    this.timeouts.endRequest();
    this.timeouts.set(LINGER_MS);
    this.readClient();
  }
}
