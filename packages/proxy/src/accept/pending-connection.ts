import type { AccessLog } from '../access-log/access-log.ts';
import type { RequestHeadRefusal } from '../http/h1/refusals.ts';
import type { DecodedHead } from '../http/h2/decoded-head.ts';
import { startsWithPreface } from '../http/h2/protocol.ts';
import type { Http2Stream } from '../http/h2/stream.ts';
import type { RequestHead } from '../http/passes/request-context.ts';
import { RequestHeadReader } from '../http/request-head-reader.ts';
import type { Admission } from '../limits/admission.ts';
import { ACTIVE, addToCounter, countOutcome, RECEIVED, SENT } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import { ClientHelloReader } from '../protocol/client-hello-reader.ts';
import { ProxyHeaderReader } from '../protocol/read-proxy-header.ts';
import { encodeTlsAlert, type TlsAlert, tlsAlertFor } from '../protocol/tls-alert.ts';
import { type DownstreamInfo, downstreamInfoOf } from '../relay/downstream-info.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';
import { type TimeoutWheel, ticksFor } from '../relay/timeout-wheel.ts';
import type { AcceptedStream, SocketAddress, StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import type { HandshakeQueue, WaitingHandshake } from './handshake-queue.ts';
import { Http2Preread, type Http2PrereadOwner } from './http2-preread.ts';
import { hasAccessLog, logRefusal } from './refuse.ts';

/** How long a client may take to send what must be read before routing (see `PrereadSteps`). */
const PREREAD_TIMEOUT_MS = 10_000;
/** How long a refused client may take to read the TLS alert or HTTP response and close the connection. */
const REFUSAL_LINGER_MS = 2_000;
/** The first byte of a TLS record with a ClientHello (RFC 8446 §5.1). No request begins with this byte. */
const TLS_HANDSHAKE = 22;

/** What must be read from a connection before it is routed. */
export interface PrereadSteps {
  /**
   * Whether a PROXY header must come first, because the operator trusts the peer to send one. The proxy must not guess
   * whether there is a header (PROXY protocol, section 2).
   */
  readonly proxyHeader: boolean;
  readonly clientHello: boolean;
  /** Whether the head of an HTTP request may come in place of the ClientHello. The first byte decides. */
  readonly requestHead: boolean;
}

export interface PendingConnectionOptions {
  readonly destination: SocketAddress;
  readonly preread: PrereadSteps;
  /** Whether Weir terminates TLS at the listener, so that only decrypted bytes count. */
  readonly terminatesTls?: boolean;
  /** The Service of the listener, or the `PendingConnections` if the listener is shared. */
  readonly owner: CountedSessions;
  /** The admission is released if the connection is refused, and passed to `onRouted` if the connection is routed. */
  readonly admission: Admission;
  readonly wheel: TimeoutWheel<Session>;
  readonly queue: HandshakeQueue;
  readonly accessLog: AccessLog;
  /** Decides whether the client is routed or refused. Called when the ClientHello has been read. */
  route(info: DownstreamInfo): RoutingDecision;
  /** Decides about a client that has sent a request without TLS. `head` is a refusal if the head is not valid. */
  routeRequest(info: DownstreamInfo, head: RequestHead | RequestHeadRefusal): RoutingDecision;
  /**
   * Called when the client is routed. Everything that `preread` requires has been read. The callee owns the paused
   * stream.
   */
  onRouted(stream: AcceptedStream, info: DownstreamInfo, admission: Admission): void;
  onInternalError(thrown: unknown): void;
  /** Returns the time in milliseconds, on the clock of the sessions. */
  readonly now: () => number;
}

/** The decision about a client after its ClientHello or request head: the client is routed or refused. */
export type RoutingDecision = {
  /**
   * The Service that the connection belongs to from now on. Set only on a shared listener, where it had no Service
   * before.
   */
  readonly newOwner?: ConnectionOwner;
  readonly terminatesTls?: boolean;
} & (
  | { readonly kind: 'admitted' }
  | {
      readonly kind: 'refused';
      readonly outcome: Outcome;
      /** The alert for the client. If undefined, the connection is reset without an alert. */
      readonly alert: TlsAlert | undefined;
      /** The HTTP response for the client, in place of an alert. */
      readonly answer?: Uint8Array;
    }
);

export interface ConnectionOwner {
  readonly service: CountedSessions;
  /**
   * The admission by the limits of the Service. Absent for a refused client, whose connection keeps its former
   * admission until it ends.
   */
  readonly admission?: Admission;
}

/**
 * A client connection that cannot be routed until its first bytes are read: a PROXY header, a ClientHello or the head
 * of a request. On a listener of one Service, the connection belongs to that Service from the start. On a shared
 * listener, it belongs to a Service only after its ClientHello or request head. The connection waits in the
 * `HandshakeQueue` before each read.
 */
export class PendingConnection implements StreamEvents, Session, WaitingHandshake, Http2PrereadOwner {
  readonly endpointStats: undefined;
  deadline: number;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #stream: AcceptedStream;
  readonly #options: PendingConnectionOptions;
  #owner: CountedSessions;
  #counters: Float64Array;
  #admission: Admission;
  /**
   * The number of bytes that were read from the client but not counted yet. They are counted when the client is routed
   * or refused, because the Service may not be known before.
   */
  #uncountedBytes = 0;
  /** The bytes that were counted for the present owner. */
  #receivedBytes = 0;
  #sentBytes = 0;
  /** Whether the bytes before the session count. False if Weir terminates TLS, because then only plaintext counts. */
  #countsBytes: boolean;
  #proxyHeaderReader: ProxyHeaderReader | undefined;
  #clientHelloReader: ClientHelloReader | undefined;
  #requestHeadReader: RequestHeadReader | undefined;
  /** Set if the client has begun with HTTP/2, in place of a request of HTTP/1.1. */
  #http2: Http2Preread | undefined;
  #info: DownstreamInfo;
  /**
   * The outcome of a client that was refused with an alert or response and has not closed the connection yet. Undefined
   * before.
   */
  #lingerOutcome: Outcome | undefined;
  #isEnded = false;
  #isReadQueued = false;

  constructor(stream: AcceptedStream, options: PendingConnectionOptions) {
    const { preread, owner, admission, wheel, destination } = options;
    this.#stream = stream;
    this.#options = options;
    this.#owner = owner;
    this.#counters = owner.counters;
    this.#admission = admission;
    this.#countsBytes = options.terminatesTls !== true;
    this.#proxyHeaderReader = preread.proxyHeader ? new ProxyHeaderReader() : undefined;
    this.#clientHelloReader = preread.clientHello ? new ClientHelloReader() : undefined;
    this.#info = { ...downstreamInfoOf(destination, stream), acceptedAt: options.now() };
    this.deadline = wheel.now + ticksFor(PREREAD_TIMEOUT_MS);
  }

  start(): void {
    addToCounter(this.#counters, ACTIVE, 1);
    this.#owner.sessions.add(this);
    this.#options.wheel.add(this);
    try {
      this.#stream.accept(this);
      this.#stream.deferReads(() => this.#queueRead());
      this.#stream.readStart();
    } catch (thrown) {
      this.onThrow(this.#stream, thrown);
    }
  }

  get hasEnded(): boolean {
    return this.#isEnded;
  }

  step(): void {
    this.#isReadQueued = false;
    this.#stream.readNow();
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#countReceived();
    const counted = this.#lingerOutcome ?? outcome;
    countOutcome(this.#counters, counted);
    if (hasAccessLog(this.#owner)) this.#log(counted);
    this.#admission.release();
    this.#unregister();
    addToCounter(this.#counters, ACTIVE, -1);
    this.#stream.reset();
  }

  onExpired(): void {
    this.end('prelude-timeout');
  }

  onEndpointUnavailable(): void {}

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded || this.#lingerOutcome !== undefined) return;
    const rest = this.#proxyHeaderReader === undefined ? bytes : this.#readProxyHeader(this.#proxyHeaderReader, bytes);
    if (rest === undefined) return;
    if (this.#http2 !== undefined) {
      this.#http2.receive(rest);
      return;
    }
    this.#uncountedBytes += rest.length;
    if (this.#clientHelloReader === undefined) this.#handOver(Uint8Array.from(rest));
    else if (rest.length > 0) {
      if (this.#options.preread.requestHead && this.#uncountedBytes === rest.length && rest[0] !== TLS_HANDSHAKE)
        this.#requestHeadReader = new RequestHeadReader();
      if (this.#requestHeadReader !== undefined) this.#readRequestHead(this.#requestHeadReader, rest);
      else this.#readClientHello(this.#clientHelloReader, rest);
    }
  }

  /**
   * Called when the client closes the connection before it is routed. Load balancers do so to check that the port is
   * open.
   */
  onEnd(): void {
    if (this.#lingerOutcome === undefined) this.end('prelude-incomplete');
  }

  onDrain(): void {
    if (this.#lingerOutcome === undefined) this.#http2?.connection.onSinkDrained();
  }

  onClose(): void {
    this.end('prelude-incomplete');
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.end('internal');
  }

  /** Returns the bytes after the PROXY header, or undefined if the header is incomplete or refused. */
  #readProxyHeader(reader: ProxyHeaderReader, bytes: Uint8Array): Uint8Array | undefined {
    const result = reader.push(bytes);
    if (result === 'more') return undefined;
    if (result.kind !== 'header') {
      this.end('bad-proxy-header');
      return undefined;
    }
    const { addresses } = result.header;
    if (addresses !== null)
      this.#info = { ...this.#info, client: addresses.source, destination: addresses.destination };
    this.#proxyHeaderReader = undefined;
    return bytes.subarray(result.consumed);
  }

  #readClientHello(reader: ClientHelloReader, bytes: Uint8Array): void {
    const result = reader.push(bytes);
    if (result === 'more') return;
    if (result.kind === 'refused') {
      const alert = tlsAlertFor(result.why);
      this.#refuse('bad-client-hello', alert && encodeTlsAlert(alert));
      return;
    }
    this.#info = { ...this.#info, serverName: result.hello.serverName, hasClientHello: true };
    this.#follow(this.#options.route(this.#info), reader.bytes);
  }

  #readRequestHead(reader: RequestHeadReader, piece: Uint8Array): void {
    const result = reader.push(piece);
    if (startsWithPreface(reader.bytes)) this.#startHttp2(reader.bytes);
    if (result === 'more' || this.#http2 !== undefined) return;
    this.#follow(this.#options.routeRequest(this.#info, result === 'done' ? reader.head : result), reader.bytes);
  }

  /** RFC 9113 §3.3: a client that knows that the server speaks HTTP/2 begins with its preface. */
  #startHttp2(bytes: Uint8Array): void {
    this.#requestHeadReader = undefined;
    // Of HTTP/2, only header blocks and DATA count, and the session counts them for each request.
    this.#uncountedBytes = 0;
    this.#http2 = new Http2Preread(this, this.#options.now);
    this.#http2.connection.start();
    this.#http2.receive(bytes);
  }

  write(bytes: Uint8Array): number {
    return this.#stream.write(bytes);
  }

  onFirstRequest(head: DecodedHead | RequestHeadRefusal): Uint8Array | undefined {
    const decision = this.#options.routeRequest(this.#info, head);
    if (decision.newOwner !== undefined) this.#moveTo(decision.newOwner);
    if (decision.kind === 'admitted') this.#handOver(NO_BYTES);
    else {
      this.#lingerOutcome = decision.outcome;
      return decision.answer ?? NO_BYTES;
    }
    return undefined;
  }

  onRefused(stream: Http2Stream | undefined): void {
    if (this.#isEnded) return;
    this.#count(stream?.receivedBytes ?? 0, stream?.sentBytes ?? 0);
    this.#linger(this.#lingerOutcome ?? 'bad-request');
  }

  /** Routes or refuses the client, whose bytes so far are `bytes`. */
  #follow(decision: RoutingDecision, bytes: Uint8Array): void {
    if (decision.newOwner !== undefined) this.#moveTo(decision.newOwner);
    if (decision.terminatesTls) this.#countsBytes = false;
    if (decision.kind === 'admitted') this.#handOver(bytes);
    else this.#refuse(decision.outcome, decision.answer ?? (decision.alert && encodeTlsAlert(decision.alert)));
  }

  /**
   * Moves the connection to its new owner. Adds the connection to the new counters before it is subtracted from the
   * former counters, because counters without active connections may be reused.
   */
  #moveTo({ service, admission }: ConnectionOwner): void {
    addToCounter(service.counters, ACTIVE, 1);
    addToCounter(this.#counters, ACTIVE, -1);
    this.#owner.sessions.delete(this);
    service.sessions.add(this);
    this.#owner = service;
    this.#counters = service.counters;
    if (admission === undefined) return;
    this.#admission.release();
    this.#admission = admission;
  }

  #queueRead(): void {
    if (this.#isEnded || this.#isReadQueued) return;
    this.#isReadQueued = true;
    this.#options.queue.addBegun(this.#admission.limiters.tenant, this);
  }

  #countReceived(): void {
    if (this.#countsBytes) this.#count(this.#uncountedBytes, 0);
    this.#uncountedBytes = 0;
  }

  #count(receivedBytes: number, sentBytes: number): void {
    addToCounter(this.#counters, RECEIVED, receivedBytes);
    addToCounter(this.#counters, SENT, sentBytes);
    this.#receivedBytes += receivedBytes;
    this.#sentBytes += sentBytes;
  }

  #handOver(prereadBytes: Uint8Array): void {
    // The session counts HTTP requests, because each may belong to another Service.
    const uncountedBytes = this.#requestHeadReader === undefined ? 0 : this.#uncountedBytes;
    if (uncountedBytes === 0) this.#countReceived();
    const http2 = this.#http2 && { http2: this.#http2.connection };
    this.#stream.readStop();
    this.#stream.deferReads(undefined);
    this.#unregister();
    try {
      this.#options.onRouted(this.#stream, { ...this.#info, ...http2, prereadBytes, uncountedBytes }, this.#admission);
    } finally {
      // Must come last: when no connection is active, the counters may be reused for another tenant, and a drain ends.
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  /**
   * Refuses the client. If an answer is sent, continues to read: if the proxy closed the connection while unread bytes
   * wait, the kernel would send RST, and the client would not see the answer.
   */
  #refuse(outcome: Outcome, answer: Uint8Array | undefined): void {
    this.#countReceived();
    if (answer === undefined) {
      this.end(outcome);
      return;
    }
    const sent = answer.length - this.#stream.write(answer);
    if (this.#countsBytes) this.#count(0, sent);
    this.#linger(outcome);
  }

  /** Sends FIN, and waits until the client closes the connection. */
  #linger(outcome: Outcome): void {
    const { wheel } = this.#options;
    this.#lingerOutcome = outcome;
    this.#stream.shutdown();
    this.deadline = wheel.now + ticksFor(REFUSAL_LINGER_MS);
    wheel.advance(this);
  }

  #log(outcome: Outcome): void {
    const { accessLog } = this.#options;
    const bytes = { receivedBytes: this.#receivedBytes, sentBytes: this.#sentBytes };
    logRefusal(this.#owner, { outcome, info: this.#info, accessLog, bytes });
  }

  #unregister(): void {
    this.#isEnded = true;
    this.#options.wheel.remove(this);
    this.#owner.sessions.delete(this);
  }
}

const NO_BYTES = new Uint8Array(0);
