import {
  DEFAULT_HTTP_PORTS,
  type EndpointStats,
  endpointsExpectTls,
  endpointsSpeakHttp2,
  httpsRedirectPort,
  locationFor,
} from '@weir/model/data-plane';
import type { LoggedRequest } from '../access-log/access-log.ts';
import type { Admission } from '../limits/admission.ts';
import { countRequestRefusal } from '../metering/counters.ts';
import { RequestMeter } from '../metering/request-meter.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import {
  editResponseFor,
  type ResponseClient,
  writeAnswer,
  writeEditedResponse,
  writeRequest,
  writtenRequest,
} from './heads.ts';
import { hstsLineFor, REDIRECT_STATUS, writeHttpsRedirect } from './https-policy.ts';
import { flush, reserveHead, type Sink, trailerLinesOf, writeChunkedEnd, writeData } from './message-output.ts';
import { type AnswerFormat, answerFormatFor } from './passes/answer-format.ts';
import { closesConnection, ERROR_REASONS, type ErrorReason } from './passes/error-answer.ts';
import type { ForwardedPeer } from './passes/forwarded.ts';
import type { CompiledFilters } from './passes/header-filters.ts';
import { type RedirectStatus, writeRedirectTo } from './passes/redirect.ts';
import type { RequestHead } from './passes/request-context.ts';
import type { ResponseHead } from './passes/response-passes.ts';
import type { RequestBody } from './request-carrier.ts';
import type { RoutedTo, RouteRedirect } from './request-router.ts';
import { dateText, output } from './worker-memory.ts';

export const SWITCHING_PROTOCOLS = 101;

/** Why the proxy answers in place of an endpoint. `redirect`: a filter of the HTTP route asks for a redirect. */
export type AnswerReason = ErrorReason | 'redirect' | 'https-redirect';

/** The part of the connection that a request needs. */
export interface RequestConnection {
  readonly peer: ForwardedPeer;
  /** The upstream of the request, or of the connection if the request has none. */
  readonly upstream: Upstream;
  readonly admission: Pick<Admission, 'admitRequest'>;
  readonly counters: Float64Array;
  /** The access log's record of the request. Undefined if the request is not logged. */
  readonly logged: LoggedRequest | undefined;
  /** Milliseconds of the clock that measures requests. */
  readonly now: number;
}

/** Sends a request to its endpoint. */
interface RequestSink extends Sink {
  /** Ends a body that was written without chunks. The trailers are complete lines `name: value` with CRLF. */
  sendEnd(trailers: Uint8Array): void;
}

export interface ResponseOptions extends Pick<ResponseClient, 'stickyCookieLine'> {
  /** When the first bytes of the request were written to the endpoint, in milliseconds of `RequestConnection.now`. */
  readonly sentAt: number;
  /** Whether the connection must end after a final response. */
  readonly closes: boolean;
}

/**
 * The request that a client connection carries: what its answer depends on, and how the request is counted. All `write`
 * methods add to the `output` of this thread. An HTTP/1.1 connection uses one instance for all its requests.
 */
export class CurrentRequest {
  /** The method (`METHOD`). */
  method: number = METHOD.other;
  hasBody = false;
  /** The body as `EndpointRequest` gets it. */
  body: RequestBody = 'none';
  /** The endpoint that the sticky cookie of the client names, if any. */
  cookieEndpoint: EndpointStats | undefined;
  /** Whether the client uses HTTPS, see `RequestContext`. */
  isHttps = false;
  /** Whether a part of the response was written for the client. */
  hasResponse = false;
  /** Whether the connection must end after the response. */
  closesAfterResponse = false;
  /** The time limit of the HTTP route, besides that of the Service. Undefined for none. */
  timeoutMs: number | undefined;
  readonly #connection: RequestConnection;
  /** The counters of the Service for which the request counts. */
  #counters: Float64Array;
  /** The upstream that the request asks for, even if it refuses the request. Undefined if there is none. */
  #requested: Upstream | undefined;
  readonly #meter = new RequestMeter();
  #clientMinorVersion = 1;
  /** Whether the client asks for a WebSocket. */
  isWebSocket = false;
  /** Whether the endpoint may get HTTP/2, so that the carrier of the request frames the body. */
  #isUnframed = false;
  #isChunked = false;
  #isChunkedResponse = false;
  /** How many more bytes the body may have. */
  #bodyBytesLeft = Number.POSITIVE_INFINITY;
  #answerFormat: AnswerFormat = 'text';
  #responseFilters: CompiledFilters | undefined;
  /** Where the HTTP route redirects the request. Undefined if the route does not. */
  #redirect: { readonly location: string; readonly status: RedirectStatus } | undefined;

  constructor(connection: RequestConnection) {
    this.#connection = connection;
    this.#counters = connection.counters;
  }

  /**
   * Begins a request, and writes the head that the endpoint receives. `routed` is a reason if no Service gets the request.
   * Returns a reason if the proxy must answer the request.
   * `webSocketKeyLine`: see `RequestContext`.
   */
  begin(head: RequestHead, routed: RoutedTo | ErrorReason, webSocketKeyLine?: Uint8Array): AnswerReason | undefined {
    const { peer, upstream, admission, now } = this.#connection;
    const isRouted = typeof routed !== 'string';
    this.#requested = isRouted ? routed.upstream : listenerOwner(upstream);
    // A request counts for the Service that its host and path select, even if this Service refuses the connection.
    const isRefused = isRouted && routed.refusal !== undefined;
    this.#counters = isRefused ? routed.upstream.service.counters : this.#connection.counters;
    this.#meter.begin(this.#counters, now);
    this.method = head.methodId;
    this.hasBody = head.framing.kind === 'chunked' || head.framing.length > 0;
    this.hasResponse = false;
    this.#clientMinorVersion = head.minorVersion;
    this.#answerFormat = answerFormatFor(head.fields);
    const isChunked = head.framing.kind === 'chunked';
    // An endpoint with TLS chooses the version later.
    this.#isUnframed = endpointsSpeakHttp2(upstream.route) || endpointsExpectTls(upstream.route);
    this.#isChunked = isChunked && !this.#isUnframed;
    this.body = !this.hasBody ? 'none' : isChunked && this.#isUnframed ? 'unframed' : 'framed';
    const refusal = writeRequest(head, { peer, routed: isRouted ? routed : undefined, webSocketKeyLine });
    this.#responseFilters = isRouted ? routed.responseFilters : undefined;
    this.timeoutMs = isRouted ? routed.timeoutMs : undefined;
    this.isHttps = writtenRequest.isHttps;
    this.cookieEndpoint = writtenRequest.cookieEndpoint;
    this.isWebSocket = writtenRequest.isWebSocket;
    this.closesAfterResponse = writtenRequest.closes;
    // The Service of the connection also pays for requests that another Service refuses and for those that no Service gets.
    if (!admission.admitRequest()) return 'too-many-requests';
    if (!isRouted) return routed;
    if (routed.upstream.service.isSuspended) return 'suspended';
    return (
      routed.refusal ??
      this.#bodyRefusal(head.framing.length) ??
      refusal ??
      (this.isHttps || httpsRedirectPort(upstream.route) === undefined ? undefined : 'https-redirect') ??
      (routed.redirect && this.#redirectReason(routed.redirect))
    );
  }

  /** Finds out where the HTTP route redirects the request. */
  #redirectReason({ filter, match, target }: RouteRedirect): AnswerReason {
    const { peer, upstream } = this.#connection;
    const scheme = this.isHttps ? 'https' : 'http';
    // A proxy in front of this one, which has terminated TLS, listens at a port of its own.
    const listenerPort = this.isHttps === peer.isTls ? upstream.route.listener.port : DEFAULT_HTTP_PORTS[scheme];
    const location = locationFor(filter, { match, target, client: { scheme, listenerPort } });
    this.#redirect = location === undefined ? undefined : { location, status: filter.status };
    return location === undefined ? 'invalid-request' : 'redirect';
  }

  /** Returns a reason if the body is larger than the Service allows. `contentLength` is 0 if the length is not known. */
  #bodyRefusal(contentLength: number): ErrorReason | undefined {
    const { upstream } = this.#connection;
    this.#bodyBytesLeft = upstream.route.settings.maxBodyBytes ?? Number.POSITIVE_INFINITY;
    return contentLength > this.#bodyBytesLeft ? 'body-too-large' : undefined;
  }

  /**
   * Whether the request is for the Service of the connection. If not, the log of this Service, which may belong to
   * another tenant, must not show the host and the path of the request.
   */
  get isForConnection(): boolean {
    return this.#requested === this.#connection.upstream;
  }

  /** Begins a request whose head is not valid. */
  beginInvalid(): void {
    this.#counters = this.#connection.counters;
    this.#requested = listenerOwner(this.#connection.upstream);
    this.method = METHOD.other;
    this.hasBody = true;
    this.hasResponse = false;
    this.#clientMinorVersion = 1;
    this.#answerFormat = 'text';
  }

  /**
   * Writes a part of the body that the endpoint receives. Returns a reason, and writes nothing, if the body is larger than
   * the Service allows.
   */
  writeRequestData(sink: Sink, bytes: Uint8Array, start: number, end: number): ErrorReason | undefined {
    this.#bodyBytesLeft -= end - start;
    if (this.#bodyBytesLeft < 0) return 'body-too-large';
    writeData(sink, this.#isChunked, bytes, start, end);
    return undefined;
  }

  /** Writes the end of the body that the endpoint receives. */
  writeRequestEnd(sink: RequestSink, trailers: HeadFields | undefined): void {
    if (this.#isChunked) writeChunkedEnd(sink, trailers);
    else if (this.#isUnframed) {
      flush(sink);
      sink.sendEnd(trailerLinesOf(trailers));
    }
  }

  /**
   * Writes the head of a response for the client. Returns the options of Connection that the endpoint sent, or undefined if
   * the response cannot be relayed.
   */
  writeResponseHead(sink: Sink, head: ResponseHead, options: ResponseOptions): number | undefined {
    // RFC 9110 §15.2: an HTTP/1.0 client does not understand interim responses.
    if (isInterim(head.status) && this.#clientMinorVersion === 0) return 0;
    reserveHead(sink);
    const connectionOptions = this.editResponseHead(head, options);
    return connectionOptions !== undefined && writeEditedResponse(head) ? connectionOptions : undefined;
  }

  /** Does the same as `writeResponseHead`, but leaves the head in `edit`. */
  editResponseHead(head: ResponseHead, { sentAt, closes, stickyCookieLine }: ResponseOptions): number | undefined {
    const { upstream, now } = this.#connection;
    const { status } = head;
    const client = {
      minorVersion: this.#clientMinorVersion,
      isHttps: this.isHttps,
      isWebSocket: this.isWebSocket,
      filters: this.#responseFilters,
      hstsLine: hstsLineFor(upstream.route),
      stickyCookieLine,
    };
    const written = editResponseFor(head, client, status >= 200 && (this.closesAfterResponse || closes));
    if (written === undefined) return undefined;
    if (!isInterim(status)) {
      this.hasResponse = true;
      this.closesAfterResponse = written.closes;
      this.#isChunkedResponse = written.bodyKind === 'chunked';
      this.#meter.relayAnswer(status, sentAt, now);
      this.#connection.logged?.onAnswer(status, sentAt, now);
    }
    return written.connectionOptions;
  }

  writeResponseData(sink: Sink, bytes: Uint8Array, start: number, end: number): void {
    writeData(sink, this.#isChunkedResponse, bytes, start, end);
  }

  /** Ends the request, whose response is complete. */
  complete(): void {
    this.#meter.complete(this.#connection.now);
  }

  /** Writes the end of the response, which completes the request. */
  writeResponseEnd(sink: Sink, trailers: HeadFields | undefined): void {
    if (this.#isChunkedResponse) writeChunkedEnd(sink, trailers);
    this.#isChunkedResponse = false;
    this.complete();
  }

  /** Replaces the output by an answer of the proxy, which completes the request. */
  writeAnswer(reason: ErrorReason | 'redirect', closes: boolean): void {
    const { upstream, now } = this.#connection;
    this.hasResponse = true;
    if (reason === 'redirect') {
      this.closesAfterResponse ||= closes;
      this.#writeRouteRedirect();
      return;
    }
    countRequestRefusal(this.#counters, reason);
    // A suspended Service keeps no connections.
    this.closesAfterResponse ||= closes || closesConnection(reason) || upstream.service.isSuspended;
    writeAnswer(reason, {
      format: this.#answerFormat,
      method: this.method,
      clientMinorVersion: this.#clientMinorVersion,
      closes: this.closesAfterResponse,
      upstream: this.#requested,
    });
    this.#meter.answer(ERROR_REASONS[reason].status, this.#counters, now);
  }

  #writeRouteRedirect(): void {
    if (this.#redirect === undefined) throw new Error('the request is not redirected');
    const { location, status } = this.#redirect;
    const { logged, now } = this.#connection;
    output.at = 0;
    writeRedirectTo(output, location, {
      status,
      dateText: dateText(Date.now()),
      closes: this.closesAfterResponse,
      clientMinorVersion: this.#clientMinorVersion,
    });
    logged?.onAnswer(status, Number.NaN, now);
    this.#meter.answer(status, this.#counters, now);
  }

  /** Replaces the output by a redirect to HTTPS, which completes the request. Returns false if the client named no host. */
  writeRedirect(head: RequestHead): boolean {
    const { upstream, counters, now } = this.#connection;
    if (!writeHttpsRedirect(head, httpsRedirectPort(upstream.route) ?? 0)) return false;
    this.hasResponse = true;
    // The client continues at another port.
    this.closesAfterResponse = true;
    this.#meter.answer(REDIRECT_STATUS, counters, now);
    return true;
  }

  /** Ends the request, if there is one, because its connection ends. */
  abandon(): void {
    this.#meter.abandon();
  }
}

/**
 * Returns the upstream of requests that no Service gets. There is none at a listener that Services share, because the
 * Service of the connection may belong to another tenant.
 */
function listenerOwner(upstream: Upstream): Upstream | undefined {
  return upstream.route.listener.shared === true ? undefined : upstream;
}

function isInterim(status: number): boolean {
  return status < 200 && status !== SWITCHING_PROTOCOLS;
}
