import type { Route } from '@weir/model/data-plane';
import { hasAccessLog, logRefusal } from '../accept/refuse.ts';
import type { LoggedRequest } from '../access-log/access-log.ts';
import type { LoggedHead } from '../access-log/log-line.ts';
import type { Admission } from '../limits/admission.ts';
import type { Direction } from '../limits/limiter-state.ts';
import { SessionThrottle, type ThrottledReader } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED } from '../metering/counters.ts';
import { type FirstRequest, type Outcome, outcomeOfHttp } from '../metering/outcome.ts';
import { startClientRecord } from '../metering/session-record.ts';
import { clientNameFor } from '../metering/top-clients-counter.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { RelayContext, Session } from '../relay/session.ts';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { AnswerReason } from './current-request.ts';
import type { EndpointRequest } from './endpoint-request.ts';
import { writtenRequest } from './heads.ts';
import type { Sink } from './message-output.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import { ForwardedPeer } from './passes/forwarded.ts';
import type { RequestRouter } from './request-router.ts';
import type { TenantTurns, TurnTaker } from './request-turns.ts';
import { TimedConnection } from './timed-connection.ts';

/** How long a client may take to send a head. */
export const HEAD_TIMEOUT_MS = 10_000;
/** How long a connection may wait for its next request. */
export const KEEP_ALIVE_MS = 60_000;
/** How long the proxy waits for the client's FIN after the last response. */
export const LINGER_MS = 2_000;

export interface HttpConnectionOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly counters: Float64Array;
  /** See `CountedConnectionOptions`. */
  readonly byteCounters?: Float64Array;
  readonly admission: Admission;
  readonly router: RequestRouter;
  /**
   * Admits a connection to another Service, or returns why its requests are refused. `open` is the admission that the
   * connection has.
   */
  admitTo(upstream: Upstream, info: DownstreamInfo, open: Admission): Admission | ErrorReason;
  /** Starts a session of HTTP/2 with the client of this session. `info.prereadBytes` are its first bytes. */
  startHttp2(client: TcpStream, upstream: Upstream, admitted: { info: DownstreamInfo; admission: Admission }): void;
}

/**
 * A client connection, which belongs to one Service at a time: its counters, limits and deadline, and when its client is
 * read. The subclass reads the requests and writes the responses.
 */
export abstract class HttpConnection
  extends TimedConnection
  implements StreamEvents, Session, ThrottledReader, TurnTaker, Sink
{
  nextWaiting: TurnTaker | undefined;
  isWaiting = false;
  /** The Service to which the connection belongs. */
  upstream: Upstream;
  admission: Admission;
  readonly info: DownstreamInfo;
  readonly peer: ForwardedPeer;
  protected readonly options: HttpConnectionOptions;
  /** The access log's record of the open request. Undefined if the request is not logged. */
  logged: LoggedRequest | undefined;
  /** Whether the bandwidth limits do not let the next request begin. */
  protected isPaced = false;
  /** Whether bytes of the open request are being read that are not counted yet. */
  protected hasUncountedBytes = false;
  protected readonly isHttp2: boolean = false;
  protected requestTurns: TenantTurns;
  readonly #throttle: SessionThrottle;
  #hasEnded = false;
  /** The connection counts for its Service from its first valid request on. */
  #firstRequest: FirstRequest = 'missing';
  /** How many of the next bytes to be processed were counted before this session. */
  #countedBefore: number;
  /** How many bytes were read from the client and not counted yet: their request may belong to another Service. */
  #uncountedInput: number;
  /** How many bytes were sent to the client and not charged to the bandwidth limits yet. */
  #unchargedOutput = 0;

  constructor(client: TcpStream, info: DownstreamInfo, options: HttpConnectionOptions) {
    const { context, upstream, counters, admission } = options;
    super(client, { ...options, tenant: admission.limiters.tenant });
    this.upstream = upstream;
    this.admission = admission;
    this.info = info;
    this.options = options;
    const { address } = info.client;
    const { trustForwarded, writeForwarded: writesForwarded } = context;
    const isTrusted = !trustForwarded.isEmpty && trustForwarded.contains(address);
    const isTls = info.tls !== undefined;
    this.peer = new ForwardedPeer({ address, listener: info.destination, isTls, isTrusted, writesForwarded });
    this.#uncountedInput = info.uncountedBytes ?? 0;
    this.#countedBefore = Math.max(0, info.prereadBytes.length - this.#uncountedInput);
    this.requestTurns = context.requestTurns.of(admission.limiters.tenant);
    this.#throttle = new SessionThrottle(context.shaper, admission.limiters, this);
    this.useIdleTimeout();
    if (info.isAlreadyActive !== true) addToCounter(counters, ACTIVE, 1);
  }

  abstract onEnd(): void;

  /** Whether bytes of the client can be processed now. */
  protected abstract get canTakeInput(): boolean;
  /** Whether the next bytes of the client may begin a request, so that they wait for the turn of the tenant. */
  protected abstract get awaitsRequest(): boolean;
  /** Called once, before the first bytes are processed. */
  protected onAccepted(): void {}

  /** Processes bytes of the client. */
  protected abstract read(bytes: Uint8Array): void;
  /** Begins the requests that had to wait, see `pace`. */
  protected abstract readNextRequests(): void;
  /** Gives up the open request. */
  protected abstract cancelRequest(): void;
  /** Called when the client may be read again. */
  abstract onEndpointReady(): void;

  protected override get isEnded(): boolean {
    return this.#hasEnded;
  }

  get now(): number {
    return this.context.transport.turns.nowMs;
  }

  /** Reads the client from now on. */
  start(): void {
    this.guarded(() => {
      this.upstream.service.sessions.add(this);
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      this.client.accept(this);
      this.client.deferReads(this.#onReadable);
      this.onAccepted();
      this.startDeadline(HEAD_TIMEOUT_MS);
      const { prereadBytes } = this.info;
      if (prereadBytes.length > 0) this.#throttle.mayRead('in', prereadBytes.length);
      this.read(prereadBytes);
      if (this.canTakeInput) this.readClient();
    });
  }

  override end(outcome: Outcome): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const counted = outcomeOfHttp(outcome, this.#firstRequest);
    const bytes = { receivedBytes: this.#uncountedInput, sentBytes: 0 };
    try {
      this.#release();
      const { upstream, info, context } = this;
      if (counted !== outcome && hasAccessLog(upstream.service))
        logRefusal(upstream.service, { outcome: counted, info, accessLog: context.accessLog, bytes });
      this.admission.release();
      if (outcome !== 'completed') this.client.reset();
    } finally {
      // Nothing comes between these two lines, see `TcpSession.end`.
      countOutcome(this.counters, counted);
      addToCounter(this.counters, ACTIVE, -1);
    }
  }

  /** Counts the connection. To be called with each request. */
  protected countConnection(): void {
    if (this.#firstRequest === 'valid') return;
    this.#firstRequest = 'valid';
    const { upstream, context, info } = this;
    addToCounter(this.counters, CONNECTIONS, 1);
    this.#startRecord(upstream);
    // A connection with counters of its own counts the bytes of each request.
    if (context.topClients === undefined || this.record !== undefined) return;
    const client = clientNameFor(info.client.address);
    context.topClients.add('connections', upstream.service.entry, { client, amount: 1 });
  }

  #startRecord({ service }: Upstream): void {
    if (this.options.byteCounters === undefined) this.record = startClientRecord(this.context, service, this.info);
  }

  override onExpired(): void {
    if (this.#firstRequest === 'missing') this.#firstRequest = 'late';
    super.onExpired();
  }

  onReadAllowed(direction: Direction): void {
    this.guarded(() => {
      if (direction === 'in') this.onEndpointReady();
      else if (this.isPaced) this.#endPause();
      else this.resumeEndpoints();
    });
  }

  #endPause(): void {
    this.isPaced = false;
    this.resumeEndpoints();
    this.readNextRequests();
  }

  /** Reads the endpoints that the bandwidth limits have paused. */
  protected resumeEndpoints(): void {
    if (!this.client.awaitsDrain) this.endpointStream?.readStart();
  }

  /** Lets no further request begin before the bandwidth limits let the client get more. Then calls `readNextRequests`. */
  protected pace(): void {
    this.isPaced = true;
    this.client.readStop();
  }

  /** Leaves the response unread while the bandwidth limits are exceeded. */
  protected pauseIfThrottled(): void {
    if (!this.maySend(0)) this.endpointStream?.readStop();
  }

  onThrow(...args: readonly unknown[]): void {
    this.context.onInternalError(args.at(-1));
    this.end('internal');
  }

  readonly #onReadable = (): void => {
    if (!this.awaitsRequest || this.requestTurns.tryTake(this)) this.client.readNow();
  };

  onTurn(): void {
    if (!this.#hasEnded) this.client.readNow();
  }

  onConnect(): void {}

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    this.#uncountedInput += bytes.length;
    this.read(bytes);
    if (!this.#hasEnded && !this.#throttle.mayRead('in', bytes.length)) this.client.readStop();
  }

  onDrain(): void {
    if (this.#hasEnded) return;
    this.extendIdleDeadline();
    if (this.maySend(0)) this.endpointStream?.readStart();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    if (!this.#hasEnded) this.end(code === undefined ? 'completed' : 'reset-by-client');
  }

  send(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    if (this.logged !== undefined) this.logged.sentBytes += bytes.length;
    this.#unchargedOutput += bytes.length;
    this.writeToClient(bytes);
  }

  /** Called after the parts of a response that one read has delivered. Stops reading the endpoint if the client is slow. */
  onReadEnd(): void {
    const stream = this.endpointStream;
    if (this.#hasEnded || stream === undefined) return;
    this.extendIdleDeadline();
    if (!this.chargeSent()) stream.readStop();
    if (this.client.awaitsDrain) this.pause(stream);
  }

  /** Counts processed bytes of the client as received by the Service. */
  protected countReceived(bytes: number): void {
    const counted = bytes - Math.min(bytes, this.#countedBefore);
    this.#countedBefore -= bytes - counted;
    this.#uncountedInput -= counted;
    addToCounter(this.counters, RECEIVED, counted);
    this.record?.addReceived(counted);
    if (this.logged === undefined) return;
    this.logged.receivedBytes += bytes;
    if (this.logged.isComplete) this.endLog();
  }

  /**
   * Begins to log a request of `route`. Returns undefined if the request is not logged. `head` is undefined if the client
   * sent no valid head.
   */
  startLog({ settings }: Route, head: LoggedHead | undefined): LoggedRequest | undefined {
    if (settings.accessLog === undefined) return undefined;
    const { isHttp2, context } = this;
    const source = { head, client: this, id: writtenRequest.id, isHttp2, trustForwarded: context.trustForwarded };
    return context.accessLog.begin(settings.accessLog, source, context.transport.turns.nowMs);
  }

  /** Begins to log the request of this connection. `request` is undefined if no endpoint gets the request. */
  protected beginLog(head: LoggedHead | undefined, request: EndpointRequest | undefined): void {
    if (head === undefined && this.#firstRequest !== 'valid') this.#firstRequest = 'invalid';
    this.logged = this.startLog(this.upstream.route, head);
    if (this.logged !== undefined) this.logged.request = request;
  }

  /** Logs the request, whose answer is complete. `reason` says why the proxy answered, if it did. */
  protected completeLog(reason?: AnswerReason): void {
    this.logged?.complete(reason);
    if (!this.hasUncountedBytes) this.endLog();
  }

  /** Writes the line of the logged request, if any, even if the request is not complete. */
  protected endLog(): void {
    const { logged, upstream, counters, context } = this;
    if (logged === undefined) return;
    this.logged = undefined;
    context.accessLog.end(logged, { service: upstream.service.entry, counters }, context.transport.turns.nowMs);
  }

  /** Forgets bytes of the client that count for no Service, or that were counted otherwise. */
  protected dropUncounted(): void {
    this.#uncountedInput = 0;
  }

  /** The same as `maySend` for the bytes of all calls of `send` since the last call. */
  protected chargeSent(): boolean {
    const bytes = this.#unchargedOutput;
    this.#unchargedOutput = 0;
    return this.maySend(bytes);
  }

  /**
   * Charges bytes that were sent to the client. Returns whether the bandwidth limits let an endpoint be read now. Otherwise
   * `onReadAllowed` follows.
   */
  protected maySend(bytes: number): boolean {
    return this.#throttle.mayRead('out', bytes);
  }

  protected override get isThrottled(): boolean {
    return this.#throttle.isThrottled;
  }

  /** Moves this connection to another Service, which has admitted the connection. All earlier requests must be answered. */
  protected moveTo(upstream: Upstream, admission: Admission): void {
    const { counters, admission: former } = this;
    const wasCounted = this.#firstRequest === 'valid';
    this.endLog();
    this.upstream.service.sessions.delete(this);
    try {
      this.upstream = upstream;
      this.admission = admission;
      this.requestTurns = this.context.requestTurns.of(admission.limiters.tenant);
      this.countFor(upstream.service.counters, admission.limiters.tenant);
      this.record?.end();
      this.#startRecord(upstream);
      addToCounter(this.counters, CONNECTIONS, 1);
      addToCounter(this.counters, ACTIVE, 1);
      this.#firstRequest = 'valid';
      this.#throttle.moveTo(admission.limiters);
      this.useIdleTimeout();
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      upstream.service.sessions.add(this);
    } finally {
      former.release();
      if (wasCounted) countOutcome(counters, 'completed');
      addToCounter(counters, ACTIVE, -1);
    }
  }

  /** Ends this session, and gives its client to a session of HTTP/2. The client keeps its admission. */
  protected startHttp2(bytes: Uint8Array): void {
    const { upstream, admission, client } = this;
    const uncountedBytes = this.#uncountedInput;
    const info = { ...this.info, prereadBytes: bytes, uncountedBytes, isAlreadyActive: true };
    this.#uncountedInput = 0;
    this.#hasEnded = true;
    client.readStop();
    this.countAllAsSent();
    this.#release();
    this.options.startHttp2(client, upstream, { info, admission });
  }

  protected readClient(): void {
    if (!this.#hasEnded && this.#throttle.mayRead('in', 0)) this.client.readStart();
  }

  protected override guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  #release(): void {
    if (this.#unchargedOutput > 0) this.chargeSent();
    addToCounter(this.counters, RECEIVED, this.#uncountedInput);
    this.record?.addReceived(this.#uncountedInput);
    this.#uncountedInput = 0;
    this.context.wheel.remove(this);
    this.upstream.service.sessions.delete(this);
    this.cancelRequest();
    this.endLog();
    this.#throttle.end();
    this.endCounting();
    this.record?.end();
  }
}
