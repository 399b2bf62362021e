// Relays the HTTP/1.1 requests of one client connection to endpoints. Reads a head, chooses an endpoint, sends the head
// after the request passes, relays the body and the response, and begins again.
import type { EndpointStats } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { Direction } from '../limits/limiter-state.ts';
import { SessionThrottle, type ThrottledReader } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED, REQUESTS } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import { CountedConnection } from '../relay/counted-connection.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { RelayContext, Session } from '../relay/session.ts';
import { ticksFor } from '../relay/timeout-wheel.ts';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import type { EndpointConnection, EndpointFailure, Exchange } from './endpoint-connection.ts';
import { ChunkedBody, writeChunkHeader } from './h1/chunked-body.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import { REFUSAL_STATUS, type RequestRefusal } from './h1/refusals.ts';
import { RequestHeadParser } from './h1/request-head.ts';
import type { ResponseHeadParser } from './h1/response-head.ts';
import { PartialHead } from './partial-head.ts';
import { type AnswerFormat, answerFormatFor } from './passes/answer-format.ts';
import { CONNECTION_OPTION } from './passes/connection-options.ts';
import { closesConnection, type ErrorReason, writeErrorAnswer } from './passes/error-answer.ts';
import { type ForwardedPeer, forwardedPeer } from './passes/forwarded.ts';
import { writeRequestHead, writeResponseHead } from './passes/head-writer.ts';
import type { RequestContext } from './passes/request-context.ts';
import { editRequest } from './passes/request-passes.ts';
import { editResponse, type ResponseContext } from './passes/response-passes.ts';
import { dateText, edit, fillRandom, output } from './worker-memory.ts';

export interface HttpSessionOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly counters: Float64Array;
  readonly admission: Admission;
}

/** How long a client may take to send a head, from its first byte. */
const HEAD_TIMEOUT_MS = 10_000;
/** How long a connection may be idle between two requests. */
const KEEP_ALIVE_MS = 60_000;
/** How long a client may take to read an answer before which the connection ends. */
const LINGER_MS = 2_000;

// What the next byte of the client belongs to.
const HEAD = 0;
const LENGTH_BODY = 1;
const CHUNKED_BODY = 2;
/** The request is complete, and its response is not. Further bytes belong to the next request. */
const RESPONSE = 3;
const TUNNEL = 4;
/** The last response was sent. Further bytes are discarded, because RST would follow a close with unread bytes. */
const LINGER = 5;

const CRLF_BYTES = 2;
/** Data of at most this length are copied behind a head or a chunk header, so that one write sends both. */
const MAX_JOINED_BYTES = 65_536;
const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const SWITCHING_PROTOCOLS = 101;

const parser: RequestHeadParser = new RequestHeadParser();
const requestContext: { -readonly [K in keyof RequestContext]: RequestContext[K] } = {
  head: parser,
  peer: forwardedPeer({ address: '0.0.0.0', port: 0, isTls: false, isTrusted: false }),
  writesForwarded: false,
  hostRewrite: undefined,
  targetRewrite: undefined,
  filters: undefined,
  fillRandom,
  connectionOptions: 0,
  isWebSocket: false,
  isRequestIdMade: false,
  requestId: new Uint8Array(16),
};
const responseContext = {
  head: undefined as unknown as ResponseHeadParser,
  clientMinorVersion: 1,
  isTls: false,
  isWebSocket: false,
  dateText: new Uint8Array(0),
  hstsLine: undefined,
  stickyCookieLine: undefined,
  filters: undefined,
  closes: false,
  connectionOptions: 0,
  bodyKind: 'none',
} satisfies ResponseContext as ResponseContext;

export class HttpSession extends CountedConnection implements StreamEvents, Session, ThrottledReader, Exchange {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #options: HttpSessionOptions;
  readonly #info: DownstreamInfo;
  readonly #throttle: SessionThrottle;
  readonly #idleTicks: number;
  readonly #peer: ForwardedPeer;
  #isEnded = false;
  #state = HEAD;
  #partialHead: PartialHead<RequestHeadParser> | undefined;
  /** Bytes of the next request, which arrived before the response was complete. */
  #nextRequest: Uint8Array | undefined;
  #hasClientEnded = false;
  #remainingBytes = 0;
  #chunks: ChunkedBody | undefined;
  #connection: EndpointConnection | undefined;
  #triedEndpoints: EndpointStats[] = [];
  #hasTriedExcluded = false;
  /** The start of the request, kept until it is certain that the request need not be sent again. */
  #replay: Uint8Array | undefined;
  /** Whether `#replay` is the whole request, and the request may be sent twice (RFC 9110 §9.2.2). */
  #isReplayable = false;
  #wasReused = false;
  #hasResponse = false;
  #requestMethod: number = METHOD.other;
  #clientMinorVersion = 1;
  #isWebSocket = false;
  #closesAfterResponse = false;
  #answerFormat: AnswerFormat = 'text';
  #responseBody: ResponseContext['bodyKind'] = 'none';

  constructor(client: TcpStream, info: DownstreamInfo, options: HttpSessionOptions) {
    const { context, upstream, counters, admission } = options;
    super(client, { context, counters, tenant: admission.limiters.tenant });
    this.#options = options;
    this.#info = info;
    this.#throttle = new SessionThrottle(context.shaper.limitersFor(admission.limiters), this);
    this.#idleTicks = ticksFor(upstream.route.settings.idleTimeoutMs);
    this.#peer = forwardedPeer({
      address: info.client.address,
      port: info.destination.port,
      isTls: info.tls !== undefined,
      isTrusted: false,
    });
    addToCounter(counters, CONNECTIONS, 1);
    addToCounter(counters, ACTIVE, 1);
  }

  protected override get endpointStream(): TcpStream | undefined {
    return this.#connection?.stream;
  }

  protected override get isEnded(): boolean {
    return this.#isEnded;
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#connection?.stats;
  }

  start(): void {
    const { wheel } = this.context;
    this.#guarded(() => {
      this.#options.upstream.service.sessions.add(this);
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      this.client.accept(this);
      this.deadline = wheel.now + ticksFor(HEAD_TIMEOUT_MS);
      wheel.add(this);
      const { prereadBytes } = this.#info;
      if (prereadBytes.length > 0) this.#read(prereadBytes, 0);
      if (!this.#isEnded) this.#readClient();
    });
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#release();
      if (outcome !== 'completed') this.client.reset();
    } finally {
      countOutcome(this.counters, outcome);
      addToCounter(this.counters, ACTIVE, -1);
    }
  }

  onExpired(): void {
    this.#guarded(() => {
      if (this.#connection?.isConnected === false) this.#tryNextEndpoint('endpoint-timeout', undefined);
      else if (this.#state === HEAD && this.#partialHead !== undefined) this.#answer('request-timeout');
      else if (this.#state === HEAD || this.#state === LINGER) this.#closeClient();
      else if (this.#hasResponse || this.#state === TUNNEL) this.end('idle-timeout');
      else this.#answer('endpoint-timeout');
    });
  }

  onEndpointUnavailable(): void {
    if (this.#isEnded || this.#connection?.isConnected !== false || !this.#mayRetry()) return;
    this.#guarded(() => {
      if (this.#options.upstream.hasUntriedEndpoint(this.#triedEndpoints))
        this.#tryNextEndpoint('endpoint-failed', undefined);
    });
  }

  // Events of the client.

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded) return;
    addToCounter(this.counters, RECEIVED, bytes.length);
    this.#read(bytes, 0);
    if (!this.#isEnded && !this.#throttle.mayRead('in', bytes.length)) this.client.readStop();
  }

  onEnd(): void {
    if (this.#isEnded) return;
    this.#hasClientEnded = true;
    if (this.#state === TUNNEL) this.#connection?.stream.shutdown();
    else if (this.#state === HEAD || this.#state === LINGER) this.#closeClient();
    // RFC 9112 §8: the request is incomplete, so the endpoint must not take it for complete.
    else if (this.#state !== RESPONSE) this.end('reset-by-client');
    else this.#closesAfterResponse = true;
  }

  onDrain(): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    const stream = this.#connection?.stream;
    if (stream !== undefined && this.#throttle.mayRead('out', 0)) stream.readStart();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    if (!this.#isEnded) this.end(code === undefined ? 'completed' : 'reset-by-client');
  }

  onThrow(...args: [TcpStream, unknown] | [unknown]): void {
    this.context.onInternalError(args.at(-1));
    this.end('internal');
  }

  onReadAllowed(direction: Direction): void {
    const stream = this.#connection?.stream;
    this.#guarded(() => {
      if (direction === 'in' && stream?.awaitsDrain !== true) this.#readClient();
      else if (direction === 'out' && !this.client.awaitsDrain) stream?.readStart();
    });
  }

  // Events of the endpoint.

  onEndpointConnected(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#options.upstream.onConnected(connection.stats);
    this.#setDeadline(this.#idleTicks);
    if (this.#replay !== undefined) this.#sendToEndpoint(connection, this.#replay);
    this.#readClient();
  }

  onEndpointDrain(): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    if (this.#throttle.mayRead('in', 0)) this.#readClient();
  }

  onResponseHead(head: ResponseHeadParser): void {
    this.extendIdleDeadline();
    if (head.status === SWITCHING_PROTOCOLS && !this.#isWebSocket) {
      this.#connection?.reset();
      this.onEndpointFailed('invalid-response', undefined);
      return;
    }
    // RFC 9110 §15.2: an HTTP/1.0 client does not understand interim responses.
    if (head.status < 200 && head.status !== SWITCHING_PROTOCOLS && this.#clientMinorVersion === 0) return;
    this.#replay = undefined;
    const isFinal = head.status >= 200 || head.status === SWITCHING_PROTOCOLS;
    if (isFinal) this.#hasResponse = true;
    // The client still sends the body of a request that has been answered. Nobody reads the rest.
    if (isFinal && this.#state !== RESPONSE && this.#state !== TUNNEL) this.#closesAfterResponse ||= head.status >= 400;
    responseContext.head = head;
    responseContext.clientMinorVersion = this.#clientMinorVersion;
    responseContext.isTls = this.#peer.isTls;
    responseContext.isWebSocket = this.#isWebSocket;
    responseContext.dateText = dateText(Date.now());
    responseContext.closes = this.#closesAfterResponse;
    editResponse(edit, responseContext);
    if ((responseContext.connectionOptions & CONNECTION_OPTION.close) !== 0) this.#connection?.endAfterResponse();
    this.#closesAfterResponse = responseContext.closes;
    this.#responseBody = responseContext.bodyKind;
    this.#reserveOutput(output.memory.length);
    if (writeResponseHead(output, edit, head) < 0) {
      output.at = 0;
      this.#connection?.reset();
      this.onEndpointFailed('invalid-response', undefined);
      return;
    }
    if (head.status === SWITCHING_PROTOCOLS) this.#startTunnel();
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const isChunked = this.#responseBody === 'chunked';
    if (isChunked) {
      this.#reserveOutput(32 + Math.min(length, MAX_JOINED_BYTES));
      output.at = writeChunkHeader(output.memory, output.at, length);
    }
    if (length > MAX_JOINED_BYTES) {
      this.#flush();
      this.writeToClient(bytes.subarray(start, end));
    } else {
      this.#reserveOutput(length + CRLF_BYTES);
      output.range(bytes, start, end);
    }
    if (isChunked) this.#writeCrlf();
  }

  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void {
    if (this.#responseBody === 'chunked') this.#writeLastChunk(trailers);
    this.#flush();
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) {
      connection.stats.activeConnections -= 1;
      // The request must be complete, too, before the connection carries another.
      if (isReusable && this.#state === RESPONSE)
        this.context.endpointConnections.keep(connection, this.context.wheel.now);
      else connection.close();
    }
    if (this.#isEnded) return;
    if (this.#closesAfterResponse || this.#state !== RESPONSE) this.#linger();
    else this.#startNextRequest();
  }

  onResponseRead(): void {
    this.#flush();
    if (this.#isEnded) return;
    const stream = this.#connection?.stream;
    if (stream === undefined) return;
    if (!this.#throttle.mayRead('out', 0)) stream.readStop();
    if (this.client.awaitsDrain) this.pause(stream);
  }

  onTunnelData(bytes: Uint8Array): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    this.#flush();
    this.writeToClient(bytes);
    const stream = this.#connection?.stream;
    if (!this.#throttle.mayRead('out', bytes.length)) stream?.readStop();
    if (this.client.awaitsDrain) this.pause(stream);
  }

  onTunnelEnd(): void {
    this.client.shutdown();
    if (this.#hasClientEnded) this.end('completed');
  }

  onEndpointFailed(failure: EndpointFailure, code: string | undefined): void {
    output.at = 0;
    const connection = this.#connection;
    if (this.#isEnded || connection === undefined) return;
    if (failure === 'not-connected') {
      this.context.onConnectError(code);
      this.#tryNextEndpoint('endpoint-failed', code);
      return;
    }
    this.#releaseConnection();
    // RFC 9112 §9.3.1: a request that a reused connection did not answer may be sent again if it is idempotent.
    if (failure === 'closed' && !this.#hasResponse && this.#wasReused && this.#isReplayable && this.#replay) {
      this.#wasReused = false;
      this.#connect('endpoint-failed');
    } else if (this.#hasResponse) this.end('reset-by-endpoint');
    else this.#answer(failure === 'closed' ? 'endpoint-failed' : 'invalid-response');
  }

  // The request.

  #read(bytes: Uint8Array, start: number): void {
    let at = start;
    while (at < bytes.length && !this.#isEnded) {
      switch (this.#state) {
        case HEAD:
          at = this.#readHead(bytes, at);
          break;
        case LENGTH_BODY:
          at = this.#readLengthBody(bytes, at);
          break;
        case CHUNKED_BODY:
          at = this.#readChunkedBody(bytes, at);
          break;
        case RESPONSE:
          this.#keepForNextRequest(bytes, at);
          return;
        case TUNNEL:
          this.#relayTunnel(at === 0 ? bytes : bytes.subarray(at));
          return;
        default:
          return;
      }
    }
  }

  /** Reads a head. Returns the position after the head, or after the whole request if it has no further bytes. */
  #readHead(bytes: Uint8Array, at: number): number {
    const partial = this.#partialHead;
    const head = partial === undefined ? parser : partial.parser;
    if (partial === undefined) head.reset();
    const result = partial === undefined ? head.parse(bytes, at, bytes.length) : partial.parse(bytes, at);
    if (result === 'more') {
      if (partial === undefined) {
        this.#partialHead = new PartialHead(new RequestHeadParser(), (own) => own.reset());
        this.#partialHead.parse(bytes, at);
        this.#setDeadline(ticksFor(HEAD_TIMEOUT_MS));
      }
      return bytes.length;
    }
    this.#partialHead = undefined;
    if (result !== 'done') {
      this.#refuse(head, result);
      return bytes.length;
    }
    const bodyStart = partial === undefined ? head.bodyStart : partial.positionAfter(head.bodyStart);
    return this.#startRequest(head, bytes, bodyStart);
  }

  #startRequest(head: RequestHeadParser, bytes: Uint8Array, bodyStart: number): number {
    addToCounter(this.counters, REQUESTS, 1);
    this.#requestMethod = head.methodId;
    this.#clientMinorVersion = head.minorVersion;
    this.#hasResponse = false;
    requestContext.head = head;
    requestContext.peer = this.#peer;
    editRequest(edit, requestContext);
    this.#isWebSocket = requestContext.isWebSocket;
    const { connectionOptions } = requestContext;
    // RFC 9112 §9.3: a connection of HTTP/1.1 persists without `close`, a connection of HTTP/1.0 only with `keep-alive`.
    this.#closesAfterResponse =
      (connectionOptions & CONNECTION_OPTION.close) !== 0 ||
      (head.minorVersion === 0 && (connectionOptions & CONNECTION_OPTION.keepAlive) === 0);
    this.#answerFormat = answerFormatFor(head.fields);
    output.at = 0;
    if (writeRequestHead(output, edit, head) < 0) {
      output.at = 0;
      this.#answer('head-too-large');
      return bytes.length;
    }
    const at = this.#joinBody(head, bytes, bodyStart);
    if (this.#isEnded || this.#state === LINGER) return bytes.length;
    this.#triedEndpoints.length = 0;
    this.#hasTriedExcluded = false;
    this.#isReplayable = this.#state === RESPONSE && isIdempotent(head.methodId);
    this.#connect('no-endpoint');
    return at;
  }

  /** Adds the body that has arrived with the head to the output. Returns the position after the body. */
  #joinBody({ framing }: RequestHeadParser, bytes: Uint8Array, bodyStart: number): number {
    if (framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0)) {
      this.#state = RESPONSE;
      return bodyStart;
    }
    if (framing.kind === 'length') {
      const end = Math.min(bytes.length, bodyStart + framing.length, bodyStart + output.memory.length - output.at);
      output.range(bytes, bodyStart, end);
      this.#remainingBytes = framing.length - (end - bodyStart);
      this.#state = this.#remainingBytes === 0 ? RESPONSE : LENGTH_BODY;
      return end;
    }
    this.#state = CHUNKED_BODY;
    this.#chunks ??= new ChunkedBody();
    this.#chunks.reset();
    return bodyStart;
  }

  #readLengthBody(bytes: Uint8Array, at: number): number {
    const end = Math.min(bytes.length, at + this.#remainingBytes);
    this.#remainingBytes -= end - at;
    if (this.#remainingBytes === 0) this.#state = RESPONSE;
    this.#relayToEndpoint(bytes.subarray(at, end));
    return end;
  }

  #readChunkedBody(bytes: Uint8Array, start: number): number {
    const chunks = this.#chunks as ChunkedBody;
    output.at = 0;
    let at = start;
    while (at < bytes.length) {
      const result = chunks.next(bytes, at, bytes.length);
      if (result === 'more') {
        at = bytes.length;
        break;
      }
      if (result === 'done') {
        this.#writeChunkEnd(chunks.trailers);
        this.#state = RESPONSE;
        at = chunks.position;
        break;
      }
      if (result !== 'data') {
        output.at = 0;
        this.#refuseBody(result);
        return bytes.length;
      }
      this.#writeRequestChunk(bytes, chunks.dataStart, chunks.dataEnd);
      at = chunks.position;
    }
    this.#flushToEndpoint();
    return at;
  }

  #writeRequestChunk(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const length = Math.min(end - at, MAX_JOINED_BYTES);
      if (output.at + length + 32 > output.memory.length) this.#flushToEndpoint();
      output.at = writeChunkHeader(output.memory, output.at, length);
      output.range(bytes, at, at + length);
      this.#writeCrlf();
      at += length;
    }
  }

  #flushToEndpoint(): void {
    if (output.at > 0) this.#relayToEndpoint(output.memory.subarray(0, output.at));
    output.at = 0;
  }

  /** Sends a part of the body. The part is kept if the endpoint is not connected yet. */
  #relayToEndpoint(bytes: Uint8Array): void {
    this.extendIdleDeadline();
    this.#isReplayable = false;
    const connection = this.#connection;
    if (connection === undefined) return;
    if (!connection.isConnected) {
      this.#replay = Buffer.concat([this.#replay ?? new Uint8Array(0), bytes]);
      this.client.readStop();
      return;
    }
    if (!connection.isConnected) return;
    this.#sendToEndpoint(connection, bytes);
  }

  #sendToEndpoint(connection: EndpointConnection, bytes: Uint8Array): void {
    this.addBufferedBytes(bytes.length);
    connection.stream.write(bytes);
    if (connection.stream.awaitsDrain) this.pause(this.client);
  }

  /** Sends the request to an endpoint: the output the first time, afterwards `#replay`. */
  #connect(failure: ErrorReason): void {
    const { upstream } = this.#options;
    const { endpointConnections: connections } = this.context;
    const stats = upstream.choose(this.#info.client, this.#triedEndpoints) ?? this.#chooseExcluded();
    if (stats === undefined) {
      this.#answer(failure);
      return;
    }
    this.#triedEndpoints.push(stats);
    stats.activeConnections += 1;
    const idle = this.#wasReplayed() ? undefined : connections.takeIdle(stats);
    this.#wasReused = idle !== undefined;
    const connection = idle ?? connections.open(stats, this.currentWindow());
    this.#connection = connection;
    connection.begin(this, this.#requestMethod);
    const first = this.#replay ?? output.memory.subarray(0, output.at);
    output.at = 0;
    if (!connection.isConnected) {
      this.#replay ??= first.slice();
      this.#setDeadline(ticksFor(upstream.route.settings.connectTimeoutMs));
      return;
    }
    if (this.#isReplayable) this.#replay ??= first.slice();
    this.#setDeadline(this.#idleTicks);
    this.#sendToEndpoint(connection, first);
  }

  #wasReplayed(): boolean {
    return this.#replay !== undefined;
  }

  #chooseExcluded(): EndpointStats | undefined {
    if (this.#hasTriedExcluded) return undefined;
    this.#hasTriedExcluded = true;
    return this.#options.upstream.chooseExcluded(this.#triedEndpoints);
  }

  #mayRetry(): boolean {
    return this.#triedEndpoints.length < MAX_ENDPOINT_ATTEMPTS;
  }

  #tryNextEndpoint(failure: ErrorReason, code: string | undefined): void {
    const connection = this.#connection;
    if (connection !== undefined && !isLocalFailure(code)) this.#options.upstream.onConnectFailed(connection.stats);
    this.#releaseConnection();
    if (this.#mayRetry()) this.#connect(failure);
    else this.#answer(failure);
  }

  // What follows a response.

  #startNextRequest(): void {
    this.#state = HEAD;
    this.#replay = undefined;
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (this.#hasClientEnded && bytes === undefined) {
      this.#closeClient();
      return;
    }
    this.#setDeadline(ticksFor(KEEP_ALIVE_MS));
    if (bytes !== undefined) {
      this.#read(bytes, 0);
      if (!this.#isEnded && this.#nextRequest === undefined) this.#readClient();
    }
  }

  /** Keeps bytes that follow a request, and reads nothing more until its response is complete. */
  #keepForNextRequest(bytes: Uint8Array, at: number): void {
    const rest = bytes.subarray(at);
    this.#nextRequest = this.#nextRequest === undefined ? rest.slice() : Buffer.concat([this.#nextRequest, rest]);
    this.client.readStop();
  }

  #startTunnel(): void {
    this.#state = TUNNEL;
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (bytes !== undefined) this.#relayTunnel(bytes);
    this.#readClient();
  }

  #relayTunnel(bytes: Uint8Array): void {
    this.extendIdleDeadline();
    if (this.#connection !== undefined) this.#sendToEndpoint(this.#connection, bytes);
  }

  #refuse(head: RequestHeadParser, refusal: RequestRefusal): void {
    this.#requestMethod = METHOD.other;
    this.#clientMinorVersion = head.minorVersion;
    this.#answerFormat = 'text';
    this.#answer(reasonFor(refusal));
  }

  #refuseBody(refusal: RequestRefusal): void {
    this.#connection?.reset();
    this.#releaseConnection();
    if (this.#hasResponse) this.end('reset-by-client');
    else {
      this.#closesAfterResponse = true;
      this.#answer(reasonFor(refusal));
    }
  }

  /** Sends an answer of the proxy itself. Ends the connection if the request is not complete. */
  #answer(reason: ErrorReason): void {
    this.#connection?.reset();
    this.#releaseConnection();
    const closes = this.#closesAfterResponse || this.#state !== RESPONSE || closesConnection(reason);
    output.at = 0;
    writeErrorAnswer(output, {
      reason,
      format: this.#answerFormat,
      isHead: this.#requestMethod === METHOD.head,
      closes,
      isHttp10: this.#clientMinorVersion === 0,
      dateText: dateText(Date.now()),
    });
    this.#flush();
    if (this.#isEnded) return;
    if (closes) this.#linger();
    else this.#startNextRequest();
  }

  /** Sends FIN after the last response, and discards what the client still sends. */
  #linger(): void {
    this.#state = LINGER;
    this.#nextRequest = undefined;
    this.client.shutdown();
    if (this.#hasClientEnded) return;
    this.#setDeadline(ticksFor(LINGER_MS));
    this.#readClient();
  }

  /** Closes a connection without a request. */
  #closeClient(): void {
    this.#state = LINGER;
    if (!this.#hasClientEnded) {
      // Nothing is left to send, and the client has been idle for too long.
      this.end('idle-timeout');
      return;
    }
    this.client.shutdown();
  }

  // Writing to the client.

  #reserveOutput(length: number): void {
    if (output.at + length > output.memory.length) this.#flush();
  }

  #flush(): void {
    if (output.at <= 0) return;
    const length = output.at;
    output.at = 0;
    if (!this.#isEnded) this.writeToClient(output.memory.subarray(0, length));
  }

  #writeCrlf(): void {
    output.byte(CR);
    output.byte(LF);
  }

  #writeLastChunk(trailers: HeadFields | undefined): void {
    this.#reserveOutput(16_384);
    this.#writeChunkEnd(trailers);
  }

  #writeChunkEnd(trailers: HeadFields | undefined): void {
    output.byte(ZERO);
    this.#writeCrlf();
    if (trailers !== undefined) {
      for (let index = 0; index < trailers.count; index += 1) {
        output.range(trailers.bytes, trailers.nameStart[index] as number, trailers.valueEnd[index] as number);
        this.#writeCrlf();
      }
    }
    this.#writeCrlf();
  }

  #readClient(): void {
    if (this.#throttle.mayRead('in', 0)) this.client.readStart();
  }

  #releaseConnection(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#connection = undefined;
    connection.stats.activeConnections -= 1;
    connection.reset();
  }

  #release(): void {
    this.context.wheel.remove(this);
    this.#options.upstream.service.sessions.delete(this);
    this.#releaseConnection();
    this.#options.admission.release();
    this.#throttle.end();
    this.endCounting();
  }

  #setDeadline(ticks: number): void {
    const { wheel } = this.context;
    this.deadline = wheel.now + ticks;
    if (this.deadline < this.wheelSlot) wheel.advance(this);
  }

  protected override extendIdleDeadline(): void {
    if (this.#state !== HEAD && this.#state !== LINGER) this.deadline = this.context.wheel.now + this.#idleTicks;
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }
}

/** Whether a request with this method may be sent twice (RFC 9110 §9.2.2). */
function isIdempotent(methodId: number): boolean {
  return methodId !== METHOD.post && methodId !== METHOD.patch && methodId !== METHOD.other;
}

function reasonFor(refusal: RequestRefusal): ErrorReason {
  switch (REFUSAL_STATUS[refusal]) {
    case 414:
      return 'target-too-long';
    case 431:
      return 'head-too-large';
    case 501:
      return 'not-implemented';
    case 505:
      return 'unsupported-version';
    default:
      return 'invalid-request';
  }
}
