// Relays the HTTP/1.1 requests of one client connection. The way of a request:
// 1. `MessageReader` finds its head and its body in the bytes of the client.
// 2. The request passes (passes/request-passes.ts) decide which head the endpoint receives.
// 3. `EndpointRequest` chooses an endpoint, sends the request, and tries again where that is safe.
// 4. `EndpointConnection` reads the response, and the response passes decide which head the client receives.
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
import type { Upstream } from '../upstream/upstream.ts';
import { EndpointRequest, type RequestOwner } from './endpoint-request.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { METHOD } from './h1/methods.ts';
import type { RequestHeadParser } from './h1/request-head.ts';
import type { ResponseHeadParser } from './h1/response-head.ts';
import { writeAnswer, writeRequest, writeResponse, writtenRequest } from './heads.ts';
import { flush, reserveHead, type Sink, writeChunkedEnd, writeData } from './message-output.ts';
import { type MessageHandler, type MessageReader, type MessageRefusal, requestReader } from './message-reader.ts';
import { type AnswerFormat, answerFormatFor } from './passes/answer-format.ts';
import { closesConnection, type ErrorReason } from './passes/error-answer.ts';
import { type ForwardedPeer, forwardedPeer } from './passes/forwarded.ts';
import { reasonForRefusal } from './refusal-reason.ts';
import { output } from './worker-memory.ts';

export interface HttpSessionOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly counters: Float64Array;
  readonly admission: Admission;
}

/** How long a client may take to send a head. */
const HEAD_TIMEOUT_MS = 10_000;
/** How long a connection may wait for its next request. */
const KEEP_ALIVE_MS = 60_000;
/** How long the proxy waits for the client's FIN after the last response. */
const LINGER_MS = 2_000;
const SWITCHING_PROTOCOLS = 101;

/** What the connection does: which bytes the client sends next, and what the proxy waits for. */
type Phase =
  /** The next bytes are a head. No request is open. */
  | 'head'
  /** The next bytes are the body of the open request. */
  | 'body'
  /** The request is complete, its response is not. Further bytes belong to the next request. */
  | 'response'
  /** The bytes of both sides belong to another protocol. */
  | 'other'
  /** The last response was sent. Bytes of the client are discarded until its FIN: a close with unread bytes sends RST. */
  | 'linger';

export class HttpSession
  extends CountedConnection
  implements StreamEvents, Session, ThrottledReader, RequestOwner, MessageHandler<RequestHeadParser>, Sink
{
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #options: HttpSessionOptions;
  readonly #info: DownstreamInfo;
  readonly #throttle: SessionThrottle;
  readonly #idleTicks: number;
  readonly #peer: ForwardedPeer;
  readonly #reader: MessageReader<RequestHeadParser> = requestReader();
  readonly #request: EndpointRequest;
  #isEnded = false;
  #phase: Phase = 'head';
  /** Bytes of the next request that arrived before the response was complete. At most one read. */
  #nextRequest: Uint8Array | undefined;
  #hasClientEnded = false;
  #method: number = METHOD.other;
  #clientMinorVersion = 1;
  #isWebSocket = false;
  #isChunkedRequest = false;
  #isChunkedResponse = false;
  #hasResponse = false;
  #closesAfterResponse = false;
  #answerFormat: AnswerFormat = 'text';

  constructor(client: TcpStream, info: DownstreamInfo, options: HttpSessionOptions) {
    const { context, upstream, counters, admission } = options;
    super(client, { context, counters, tenant: admission.limiters.tenant });
    this.#options = options;
    this.#info = info;
    this.#throttle = new SessionThrottle(context.shaper.limitersFor(admission.limiters), this);
    this.#idleTicks = ticksFor(upstream.route.settings.idleTimeoutMs);
    const { address } = info.client;
    const { port } = info.destination;
    this.#peer = forwardedPeer({ address, port, isTls: info.tls !== undefined, isTrusted: false });
    this.#request = new EndpointRequest(this, { context, upstream, client: info.client });
    addToCounter(counters, CONNECTIONS, 1);
    addToCounter(counters, ACTIVE, 1);
  }

  protected override get endpointStream(): TcpStream | undefined {
    return this.#request.stream;
  }

  protected override get isEnded(): boolean {
    return this.#isEnded;
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#request.stats;
  }

  start(): void {
    const { wheel } = this.context;
    this.#guarded(() => {
      this.#options.upstream.service.sessions.add(this);
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      this.client.accept(this);
      this.deadline = wheel.now + ticksFor(HEAD_TIMEOUT_MS);
      wheel.add(this);
      this.#read(this.#info.prereadBytes);
      if (this.#phase === 'head') this.#readClient();
    });
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#release();
      if (outcome !== 'completed') this.client.reset();
    } finally {
      // Nothing comes between these two lines, see `TcpSession.end`.
      countOutcome(this.counters, outcome);
      addToCounter(this.counters, ACTIVE, -1);
    }
  }

  onExpired(): void {
    this.#guarded(() => {
      if (this.#request.isConnecting) this.#request.tryNextEndpoint('endpoint-timeout');
      else if (this.#phase === 'head' && this.#reader.isInHead) this.#answer('request-timeout');
      else if (this.#phase === 'response') this.#failRequest('endpoint-timeout', this.#hasResponse);
      else this.end('idle-timeout');
    });
  }

  onEndpointUnavailable(): void {
    if (!this.#isEnded) this.#guarded(() => this.#request.onEndpointUnavailable());
  }

  onReadAllowed(direction: Direction): void {
    if (direction === 'in') this.#guarded(() => this.onEndpointReady());
    else if (!this.client.awaitsDrain) this.#guarded(() => this.#request.stream?.readStart());
  }

  onThrow(...args: readonly unknown[]): void {
    this.context.onInternalError(args.at(-1));
    this.end('internal');
  }

  // The client's stream.

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded) return;
    addToCounter(this.counters, RECEIVED, bytes.length);
    this.#read(bytes);
    if (!this.#isEnded && !this.#throttle.mayRead('in', bytes.length)) this.client.readStop();
  }

  onEnd(): void {
    if (this.#isEnded) return;
    this.#hasClientEnded = true;
    switch (this.#phase) {
      case 'head':
      case 'linger':
        this.client.shutdown();
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

  onDrain(): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    if (this.#throttle.mayRead('out', 0)) this.#request.stream?.readStart();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    if (!this.#isEnded) this.end(code === undefined ? 'completed' : 'reset-by-client');
  }

  send(bytes: Uint8Array): void {
    if (!this.#isEnded) this.writeToClient(bytes);
  }

  // The request, in the order of its parts.

  #read(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && !this.#isEnded && this.#phase !== 'linger') {
      if (this.#phase === 'response') {
        this.#keepForNextRequest(bytes, at);
        return;
      }
      if (this.#phase === 'other') {
        this.extendIdleDeadline();
        this.#request.send(at === 0 ? bytes : bytes.subarray(at));
        return;
      }
      const wasInHead = this.#reader.isInHead;
      at = this.#reader.read(bytes, at, this);
      // Otherwise the deadline is that of the time without a request.
      if (this.#reader.isInHead && !wasInHead) this.#setDeadline(ticksFor(HEAD_TIMEOUT_MS));
      flush(this.#request);
    }
  }

  onHead(head: RequestHeadParser): 'body' {
    addToCounter(this.counters, REQUESTS, 1);
    this.#phase = 'body';
    this.#method = head.methodId;
    this.#clientMinorVersion = head.minorVersion;
    this.#answerFormat = answerFormatFor(head.fields);
    this.#isChunkedRequest = head.framing.kind === 'chunked';
    const refusal = writeRequest(head, this.#peer);
    this.#isWebSocket = writtenRequest.isWebSocket;
    this.#closesAfterResponse = writtenRequest.closes;
    this.#setDeadline(this.#idleTicks);
    if (refusal === undefined) this.#request.begin(this.#method);
    else this.#answer(refusal);
    return 'body';
  }

  onBodyData(bytes: Uint8Array, start: number, end: number): void {
    this.extendIdleDeadline();
    writeData(this.#request, this.#isChunkedRequest, bytes, start, end);
  }

  onMessageEnd(trailers: HeadFields | undefined): void {
    if (this.#isChunkedRequest) writeChunkedEnd(this.#request, trailers);
    this.#phase = 'response';
    this.#request.complete();
  }

  onRefusal(refusal: MessageRefusal): void {
    output.at = 0;
    if (this.#phase === 'head') {
      this.#method = METHOD.other;
      this.#clientMinorVersion = 1;
      this.#answerFormat = 'text';
    }
    this.#failRequest(reasonForRefusal(refusal), this.#hasResponse);
  }

  onConnecting(): void {
    this.#setDeadline(ticksFor(this.#options.upstream.route.settings.connectTimeoutMs));
  }

  onEndpointReady(): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    if (this.#nextRequest === undefined && this.#request.stream?.awaitsDrain !== true) this.#readClient();
  }

  onEndpointFull(): void {
    this.pause(this.client);
  }

  // The response, in the order of its parts.

  onResponseHead(head: ResponseHeadParser): number | undefined {
    const { status } = head;
    const isSwitch = status === SWITCHING_PROTOCOLS;
    this.extendIdleDeadline();
    // RFC 9110 §15.2: an HTTP/1.0 client does not understand interim responses.
    if (status < 200 && !isSwitch && this.#clientMinorVersion === 0) return 0;
    reserveHead(this);
    const client = { minorVersion: this.#clientMinorVersion, isTls: this.#peer.isTls, isWebSocket: this.#isWebSocket };
    // If the endpoint answers before the request is complete, nobody reads the rest of the request.
    const written = writeResponse(head, client, status >= 200 && (this.#closesAfterResponse || this.#phase === 'body'));
    if (written === undefined) return undefined;
    if (status >= 200 || isSwitch) {
      this.#hasResponse = true;
      this.#closesAfterResponse = written.closes;
      this.#isChunkedResponse = written.bodyKind === 'chunked';
    }
    if (isSwitch) this.#startOtherProtocol();
    return written.connectionOptions;
  }

  onResponseData(bytes: Uint8Array, start: number, end: number): void {
    writeData(this, this.#isChunkedResponse, bytes, start, end);
  }

  onResponseEnd(trailers: HeadFields | undefined): void {
    if (this.#isEnded) return;
    if (this.#isChunkedResponse) writeChunkedEnd(this, trailers);
    flush(this);
    this.#isChunkedResponse = false;
    this.#endRequest();
  }

  onReadEnd(): void {
    flush(this);
    const { stream } = this.#request;
    if (this.#isEnded || stream === undefined) return;
    this.extendIdleDeadline();
    if (!this.#throttle.mayRead('out', 0)) stream.readStop();
    if (this.client.awaitsDrain) this.pause(stream);
  }

  onOtherData(bytes?: Uint8Array): void {
    if (bytes === undefined) return;
    flush(this);
    this.send(bytes);
  }

  onOtherEnd(): void {
    this.client.shutdown();
  }

  onRequestFailed(reason: ErrorReason, hasResponse: boolean): void {
    output.at = 0;
    if (!this.#isEnded) this.#failRequest(reason, hasResponse);
  }

  // What follows a request.

  /** Ends the request with an answer of the proxy, or with RST if the client has received a part of a response. */
  #failRequest(reason: ErrorReason, hasResponse: boolean): void {
    if (hasResponse) this.end('reset-by-endpoint');
    else this.#answer(reason);
  }

  #answer(reason: ErrorReason): void {
    this.#request.cancel();
    this.#closesAfterResponse ||= this.#phase !== 'response' || closesConnection(reason);
    writeAnswer(reason, {
      format: this.#answerFormat,
      method: this.#method,
      clientMinorVersion: this.#clientMinorVersion,
      closes: this.#closesAfterResponse,
    });
    flush(this);
    this.#endRequest();
  }

  #endRequest(): void {
    if (this.#isEnded) return;
    if (this.#closesAfterResponse || this.#phase === 'body') this.#linger();
    else this.#startNextRequest();
  }

  #startNextRequest(): void {
    this.#phase = 'head';
    this.#reader.next(METHOD.other);
    this.#hasResponse = false;
    this.#setDeadline(ticksFor(KEEP_ALIVE_MS));
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (bytes !== undefined) this.#read(bytes);
    if (this.#isEnded || this.#nextRequest !== undefined) return;
    // RFC 9112 §9.6: a client that has sent FIN still reads the responses to the requests before.
    if (this.#hasClientEnded && (this.#phase === 'head' || this.#phase === 'body')) this.#linger();
    else if (bytes !== undefined) this.#readClient();
  }

  /** Keeps bytes behind a request, and reads nothing more until its response is complete. */
  #keepForNextRequest(bytes: Uint8Array, at: number): void {
    const rest = bytes.subarray(at);
    this.#nextRequest = this.#nextRequest === undefined ? rest.slice() : Buffer.concat([this.#nextRequest, rest]);
    this.client.readStop();
  }

  #startOtherProtocol(): void {
    this.#phase = 'other';
    const bytes = this.#nextRequest;
    this.#nextRequest = undefined;
    if (bytes !== undefined) this.#request.send(bytes);
    this.#readClient();
  }

  /** Sends FIN, and discards what the client still sends. */
  #linger(): void {
    this.#phase = 'linger';
    this.#reader.stop();
    this.#request.cancel();
    this.#nextRequest = undefined;
    this.client.shutdown();
    this.#setDeadline(ticksFor(LINGER_MS));
    this.#readClient();
  }

  #readClient(): void {
    if (!this.#isEnded && this.#throttle.mayRead('in', 0)) this.client.readStart();
  }

  #release(): void {
    this.context.wheel.remove(this);
    this.#options.upstream.service.sessions.delete(this);
    this.#request.cancel();
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
    if (this.#phase !== 'head' && this.#phase !== 'linger') this.deadline = this.context.wheel.now + this.#idleTicks;
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }
}
