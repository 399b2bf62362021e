import { type EndpointStats, endpointsSpeakHttp2 } from '@weir/model/data-plane';
import type { LoggedRequest } from '../../access-log/access-log.ts';
import type { Admission } from '../../limits/admission.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome } from '../../metering/counters.ts';
import type { Outcome } from '../../metering/outcome.ts';
import type { RelayContext, Session } from '../../relay/session.ts';
import type { Window } from '../../transport/tcp-transport.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { type AnswerReason, CurrentRequest, type RequestConnection, SWITCHING_PROTOCOLS } from '../current-request.ts';
import { EndpointRequest } from '../endpoint-request.ts';
import type { HeadFields } from '../h1/head-fields.ts';
import type { RequestHeadRefusal } from '../h1/refusals.ts';
import type { HttpConnectionOptions } from '../http-connection-options.ts';
import { flush, trailerLinesOf } from '../message-output.ts';
import type { ErrorReason } from '../passes/error-answer.ts';
import type { ForwardedPeer } from '../passes/forwarded.ts';
import type { ResponseHead } from '../passes/response-passes.ts';
import { reasonForRefusal } from '../refusal-reason.ts';
import type { RequestOwner } from '../request-owner.ts';
import type { RoutedTo } from '../request-router.ts';
import { RequestTimeouts } from '../request-timeouts.ts';
import { edit, output } from '../worker-memory.ts';
import type { DecodedHead } from './decoded-head.ts';
import { encodeResponse } from './head-encoder.ts';
import { sendOutput } from './http1-answer.ts';
import { ERROR } from './protocol.ts';
import type { Http2RequestOwner, ResponsePacer } from './request-owner.ts';
import { SeparatePacer } from './separate-pacer.ts';
import type { Http2Stream, StreamConsumer } from './stream.ts';
import { StreamBytes } from './stream-bytes.ts';
import { ACCEPT_NAME, mayAnswer, newWebSocketKey, type WebSocketKey } from './websocket.ts';

/** One request of an HTTP/2 connection, and its stream. */
export class Http2Request implements StreamConsumer, RequestOwner, RequestConnection, Session {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly context: RelayContext;
  /** The counters of the Service that gets the request. */
  counters: Float64Array;
  upstream: Upstream;
  readonly peer: ForwardedPeer;
  logged: LoggedRequest | undefined;
  readonly #owner: Http2RequestOwner;
  readonly #options: HttpConnectionOptions;
  readonly #stream: Http2Stream;
  readonly #current: CurrentRequest;
  #request: EndpointRequest | undefined;
  /** The admission to another Service than that of the connection. */
  #ownAdmission: Admission | undefined;
  /** How a request with an admission of its own ends. */
  #ownOutcome: Outcome = 'completed';
  /** Bytes of the body that the endpoint has not taken yet. */
  #unconsumedBytes = 0;
  #isEndpointFull = false;
  /** Set if the client asks for a WebSocket. */
  #webSocketKey: WebSocketKey | undefined;
  /** Whether the endpoint has accepted the WebSocket. */
  #isWebSocket = false;
  #hasTrailers = false;
  readonly #timeouts: RequestTimeouts;
  readonly #bytes: StreamBytes;
  #pacer: ResponsePacer;
  #isEnded = false;

  constructor(owner: Http2RequestOwner, stream: Http2Stream, options: HttpConnectionOptions) {
    this.context = options.context;
    this.#owner = owner;
    this.#stream = stream;
    this.#options = options;
    this.#pacer = owner;
    this.upstream = owner.upstream;
    this.peer = owner.peer;
    this.counters = options.counters;
    this.#current = new CurrentRequest(this);
    this.#timeouts = new RequestTimeouts(options.context.wheel, this);
    this.#bytes = new StreamBytes(stream);
  }

  // What `CurrentRequest` reads.

  get admission(): Admission {
    return this.#ownAdmission ?? this.#options.admission;
  }

  get now(): number {
    return this.#owner.now;
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#request?.stats;
  }

  /** Begins the request, or answers it. */
  start(head: DecodedHead, refusal: RequestHeadRefusal | undefined): void {
    const routed = refusal === undefined ? this.#route(head) : reasonForRefusal(refusal);
    this.#register();
    if (refusal !== undefined) {
      this.#current.beginInvalid();
      this.logged = this.#owner.startLog(this.upstream.route, undefined);
      this.#answer(routed as ErrorReason);
      return;
    }
    if (head.startsWebSocket) {
      this.#webSocketKey = newWebSocketKey();
      // DATA is not a body, and the HTTP/1.1 request has none.
      head.framing.kind = 'none';
    }
    const refused = head.startsWebSocket && endpointsSpeakHttp2(this.upstream.route) ? 'not-implemented' : routed;
    const reason = this.#current.begin(head, refused, this.#webSocketKey?.line);
    this.#timeouts.limitRequest(this.#current.timeoutMs);
    if (this.#current.isForConnection) this.logged = this.#owner.startLog(this.upstream.route, head);
    if (reason === 'https-redirect') {
      if (this.#current.writeRedirect(head)) this.#sendOutput('https-redirect');
      else this.#answer('invalid-request');
    } else if (reason !== undefined) this.#answer(reason);
    // The reset follows. An endpoint would cost far more than the rest of such a request.
    else if (this.#stream.isResetAhead) output.at = 0;
    else {
      const client = this.#owner.info.client;
      this.#request = new EndpointRequest(this, { context: this.context, upstream: this.upstream, client });
      this.#request.cookieEndpoint = this.#current.cookieEndpoint;
      if (this.logged !== undefined) this.logged.request = this.#request;
      this.#request.begin(this.#current);
      if (this.#request !== undefined) flush(this.#request);
      this.#pauseIfThrottled();
    }
  }

  /** Finds the upstream of the request, and admits the request to another Service than that of the connection. */
  #route(head: DecodedHead): RoutedTo | ErrorReason {
    const { upstream: ownUpstream, info } = this.#owner;
    const { router, admitTo } = this.#options;
    const routed = router.route(head, this.#owner);
    if (typeof routed === 'string' || routed.upstream === ownUpstream) return routed;
    const admission = admitTo(routed.upstream, info, this.admission);
    if (typeof admission === 'string') {
      routed.refusal = admission;
      return routed;
    }
    this.#ownAdmission = admission;
    this.#pacer = new SeparatePacer(this.context.shaper, admission.limiters, this);
    this.upstream = routed.upstream;
    this.counters = routed.upstream.service.counters;
    addToCounter(this.counters, CONNECTIONS, 1);
    addToCounter(this.counters, ACTIVE, 1);
    return routed;
  }

  #register(): void {
    const { idleTimeoutMs, requestTimeoutMs } = this.upstream.route.settings;
    this.#timeouts.useIdleTimeout(idleTimeoutMs);
    this.#timeouts.startRequest(requestTimeoutMs);
    this.#timeouts.start(idleTimeoutMs);
    // A suspension of the connection's Service ends the whole connection.
    if (this.#ownAdmission !== undefined) this.upstream.service.sessions.add(this);
  }

  // The request of the client.

  onResponse(): void {}

  onData(_stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void {
    this.#progress();
    const request = this.#request;
    if (request === undefined) return;
    if (this.#isWebSocket) request.send(bytes.subarray(start, end));
    else {
      // An endpoint that has not accepted the WebSocket would take the bytes for its next request.
      const refusal =
        this.#webSocketKey === undefined
          ? this.#current.writeRequestData(request, bytes, start, end)
          : 'invalid-request';
      if (refusal !== undefined) {
        this.#fail(refusal);
        return;
      }
      flush(request);
    }
    if (this.#isEndpointFull) this.#unconsumedBytes += end - start;
    else if (this.#request !== undefined) this.#owner.connection.consumed(this.#stream, end - start);
  }

  onTrailers(_stream: Http2Stream, trailers: HeadFields): void {
    this.#hasTrailers = true;
    this.#completeRequest(trailers);
  }

  onEnd(): void {
    if (!this.#hasTrailers) this.#completeRequest(undefined);
  }

  #completeRequest(trailers: HeadFields | undefined): void {
    const request = this.#request;
    if (request === undefined) return;
    if (this.#isWebSocket) request.shutdown();
    if (this.#webSocketKey !== undefined) return;
    this.#current.writeRequestEnd(request, trailers);
    request.complete();
    flush(request);
  }

  onDrain(): void {
    this.#progress();
    if (this.#mayRead()) this.resumeEndpoint();
  }

  onClose(_stream: Http2Stream, code: number | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (code !== undefined) this.#current.abandon();
    this.#request?.cancel();
    this.#request = undefined;
    this.#timeouts.stop();
    this.#bytes.count(this.counters);
    this.#endLog();
    this.#owner.onRequestEnd(this, this.#stream);
    this.#pacer.endResponse(this, this.#bytes.takeUncharged());
    if (this.#ownAdmission === undefined) return;
    this.upstream.service.sessions.delete(this);
    this.#ownAdmission.release();
    countOutcome(this.counters, this.#ownOutcome);
    addToCounter(this.counters, ACTIVE, -1);
  }

  // The endpoint.

  currentWindow(): Window {
    return this.#owner.currentWindow();
  }

  onEndpointFull(): void {
    this.#isEndpointFull = true;
  }

  onEndpointReady(): void {
    this.#isEndpointFull = false;
    if (this.#isEnded) return;
    this.#progress();
    const bytes = this.#unconsumedBytes;
    this.#unconsumedBytes = 0;
    if (bytes > 0) this.#owner.connection.consumed(this.#stream, bytes);
    this.#owner.flush();
    this.#pauseIfThrottled();
  }

  onResponseHead(head: ResponseHead): number | undefined {
    const request = this.#request;
    if (request === undefined || !mayAnswer(head, this.#webSocketKey)) return undefined;
    const stickyCookieLine = request.stickyCookieLine(this.#current);
    const options = this.#current.editResponseHead(head, { sentAt: request.sentAt, closes: false, stickyCookieLine });
    if (options === undefined) return undefined;
    const isSwitch = head.status === SWITCHING_PROTOCOLS;
    this.#isWebSocket ||= isSwitch;
    if (isSwitch) this.#timeouts.endRequest();
    if (isSwitch) edit.dropByName(ACCEPT_NAME);
    const { connection } = this.#owner;
    // RFC 8441 §5: 200 accepts the WebSocket. RFC 9113 §8.6: HTTP/2 has no 101.
    encodeResponse(connection.beginHead(), edit, isSwitch ? 200 : head.status);
    connection.sendHead(this.#stream, false);
    return options;
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isEnded) return;
    this.#owner.connection.sendData(this.#stream, bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined): void {
    if (this.#isEnded) return;
    this.#request = undefined;
    this.#current.complete();
    this.logged?.complete(undefined);
    const { connection } = this.#owner;
    const lines = trailerLinesOf(trailers);
    if (lines.length > 0) connection.sendTrailers(this.#stream, lines);
    else connection.sendEnd(this.#stream);
  }

  onReadEnd(): void {
    this.#owner.flush();
    if (this.#isEnded) return;
    this.#progress();
    // Not before the end of the read: the response may be complete, and then the next request uses the connection.
    const source = this.#request?.source;
    if (source === undefined) return;
    if (!this.#mayRead() || this.#stream.pending !== undefined) source.readStop();
  }

  #mayRead(): boolean {
    return this.#pacer.mayRead(this, this.#bytes.takeUncharged());
  }

  /** Leaves the response unread while the bandwidth limits are exceeded. */
  #pauseIfThrottled(): void {
    const request = this.#request;
    if (request !== undefined && !this.#mayRead() && !request.isConnecting) request.source?.readStop();
  }

  /** Reads the endpoint again. */
  resumeEndpoint(): void {
    if (!this.#isEnded && this.#stream.pending === undefined) this.#request?.source?.readStart();
  }

  onOtherData(bytes: Uint8Array): void {
    this.onResponseData(bytes, 0, bytes.length);
  }

  onOtherEnd(): void {
    if (this.#isEnded) return;
    this.#owner.connection.sendEnd(this.#stream);
    this.#owner.flush();
  }

  onRequestFailed(reason: ErrorReason, resetCode?: number): void {
    output.at = 0;
    this.#request = undefined;
    if (!this.#isEnded) this.#fail(reason, resetCode);
  }

  // What `Session` requires.

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    // `onClose` counts the only outcome of a request with an admission of its own.
    if (this.#ownAdmission !== undefined) this.#ownOutcome = outcome;
    else if (outcome !== 'completed') countOutcome(this.counters, outcome);
    this.#owner.connection.reset(this.#stream, ERROR.cancel);
    this.#owner.flush();
  }

  onExpired(): void {
    this.#timeouts.restart();
    try {
      const isInTime = !this.#timeouts.hasRequestTimedOut;
      if (this.#pacer.waitsForBandwidth(this) && this.#timeouts.extendThrottled()) return;
      if (isInTime && this.#request?.isConnecting === true) this.#request.tryNextEndpoint('connect-timeout');
      // RFC 9110 §15.5.9: the client was too slow, unless the endpoint does not take the body.
      else this.#fail(isInTime && this.#awaitsBody ? 'request-timeout' : 'endpoint-timeout');
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  onConnecting(): void {
    this.#timeouts.set(this.upstream.route.settings.connectTimeoutMs);
  }

  /** Whether nothing but the client keeps the endpoint from getting the rest of the body. */
  get #awaitsBody(): boolean {
    return !this.#stream.hasPeerEnded && this.#webSocketKey === undefined && !this.#isEndpointFull;
  }

  onEndpointUnavailable(): void {
    if (!this.#isEnded) this.#request?.onEndpointUnavailable();
  }

  onThrow(thrown: unknown): void {
    this.#owner.onThrow(thrown);
  }

  // Answers of the proxy.

  #fail(reason: ErrorReason, resetCode: number = ERROR.internal): void {
    if (this.#current.hasResponse) {
      this.#owner.connection.reset(this.#stream, resetCode);
      this.#owner.flush();
    } else this.#answer(reason);
  }

  #answer(reason: ErrorReason | 'redirect'): void {
    this.#request?.cancel();
    this.#request = undefined;
    this.#current.writeAnswer(reason, false);
    this.#sendOutput(reason);
  }

  /** Sends the HTTP/1.1 answer in the output, which has this reason, as an HTTP/2 answer. */
  #sendOutput(reason: AnswerReason): void {
    this.logged?.complete(reason);
    sendOutput(this.#owner.connection, this.#stream);
    this.#owner.flush();
  }

  #progress(): void {
    this.#bytes.count(this.counters);
    this.#owner.onProgress();
    this.#timeouts.extendIdle();
  }

  #endLog(): void {
    const { logged } = this;
    if (logged === undefined) return;
    this.#bytes.writeTo(logged);
    this.context.accessLog.end(logged, { service: this.upstream.service.entry, counters: this.counters }, this.now);
  }
}
