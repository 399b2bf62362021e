import type { EndpointStats, Route } from '@weir/model/data-plane';
import { logWithoutRequest } from '../accept/refuse.ts';
import type { LoggedRequest } from '../access-log/access-log.ts';
import type { LoggedHead } from '../access-log/log-line.ts';
import type { Admission } from '../limits/admission.ts';
import type { Direction } from '../limits/limiter-state.ts';
import { SessionThrottle, type ThrottledReader } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED } from '../metering/counters.ts';
import { type FirstRequest, type Outcome, outcomeOfHttp } from '../metering/outcome.ts';
import { startClientRecord } from '../metering/session-record.ts';
import { CountedConnection } from '../relay/counted-connection.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { Session } from '../relay/session.ts';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { AnswerReason } from './current-request.ts';
import type { EndpointRequest } from './endpoint-request.ts';
import { writtenRequest } from './heads.ts';
import type { HttpConnectionOptions } from './http-connection-options.ts';
import type { Sink } from './message-output.ts';
import { ForwardedPeer } from './passes/forwarded.ts';
import { HEAD_TIMEOUT_MS, RequestTimeouts } from './request-timeouts.ts';
import type { TenantTurns, TurnTaker } from './request-turns.ts';

/**
 * A client connection, which belongs to one Service at a time: counters, limits, deadline, access log, and when the
 * client is read. The subclasses read requests and write responses.
 */
export abstract class HttpConnection
  extends CountedConnection
  implements StreamEvents, Session, ThrottledReader, TurnTaker, Sink
{
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  protected readonly timeouts: RequestTimeouts;
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
  /** Whether further requests must wait, see `pace`. */
  protected isPaced = false;
  /** Whether a read is being processed. Its bytes are counted afterwards, and the log line waits for the count. */
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
    this.timeouts = new RequestTimeouts(context.wheel, this);
    this.timeouts.useIdleTimeout(upstream.route.settings.idleTimeoutMs);
    if (info.isAlreadyActive !== true) addToCounter(counters, ACTIVE, 1);
  }

  abstract onEnd(): void;
  abstract readonly endpointStats: EndpointStats | undefined;
  abstract onEndpointUnavailable(): void;

  /** Whether a request is open, so that the idle timeout of the Service applies. */
  protected abstract get hasRequest(): boolean;
  /** Called when a timeout has passed. */
  protected abstract onTimeout(): void;

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
  /** Gives up the open requests. */
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
      this.timeouts.start(HEAD_TIMEOUT_MS);
      const { prereadBytes } = this.info;
      if (prereadBytes.length > 0) this.#throttle.mayRead('in', prereadBytes.length);
      this.read(prereadBytes);
      if (this.canTakeInput) this.readClient();
    });
  }

  end(outcome: Outcome): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const counted = outcomeOfHttp(outcome, this.#firstRequest);
    const receivedBytes = this.#uncountedInput;
    try {
      this.#release();
      if (counted !== outcome) logWithoutRequest(this, this.context.accessLog, { outcome: counted, receivedBytes });
      this.admission.release();
      if (outcome !== 'completed') this.client.reset();
    } finally {
      // Nothing comes between these two lines, see `TcpSession.end`.
      countOutcome(this.counters, counted);
      addToCounter(this.counters, ACTIVE, -1);
    }
  }

  /** Counts the connection for its Service, once. Must be called with each valid request. */
  protected countConnection(): void {
    if (this.#firstRequest === 'valid') return;
    this.#firstRequest = 'valid';
    addToCounter(this.counters, CONNECTIONS, 1);
    this.record = startClientRecord(this.context, this.upstream, { info: this.info, countsBytes: !this.isHttp2 });
  }

  /** Must be called with each request that is not valid. A connection without a valid request is not counted. */
  protected onInvalidRequest(): void {
    if (this.#firstRequest !== 'valid') this.#firstRequest = 'invalid';
  }

  onReadAllowed(direction: Direction): void {
    this.guarded(() => {
      if (direction === 'in') this.onEndpointReady();
      else {
        // A stream that fills each read gets a larger buffer, which could exceed the limit for a whole second.
        this.endpointStream?.limitReadBytes?.(this.#throttle.quantumBytes('out'));
        this.#resumeResponses();
      }
    });
  }

  /** Continues what waited for the bandwidth limits or for the client: first the responses, then further requests. */
  #resumeResponses(): void {
    if (this.isPaced && this.client.awaitsDrain) return;
    const wasPaced = this.isPaced;
    this.isPaced = false;
    this.resumeEndpoints();
    if (wasPaced) this.readNextRequests();
  }

  /** Reads the endpoints that the bandwidth limits have paused. */
  protected resumeEndpoints(): void {
    if (!this.client.awaitsDrain) this.endpointStream?.readStart();
  }

  /** Makes requests wait until the client and the bandwidth limits take more. Then calls `readNextRequests`. */
  protected pace(): void {
    this.isPaced = true;
    this.client.readStop();
  }

  /** Charges the response. Makes the next request wait if the client has received too much or does not read. */
  protected paceAfterResponse(): void {
    const maySend = this.chargeSent();
    // Otherwise the answers to many small requests would wait in memory.
    if (!maySend || this.client.awaitsDrain) this.pace();
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
    if (this.maySend(0)) this.#resumeResponses();
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

  /** Called after all parts of a response from one read. Pauses the endpoint if the client must not get more. */
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

  /** Begins the record of a request if the Service has an access log. `head` is undefined if the head was not valid. */
  startLog({ settings }: Route, head: LoggedHead | undefined): LoggedRequest | undefined {
    if (settings.accessLog === undefined) return undefined;
    const { isHttp2, context } = this;
    const source = { head, client: this, id: writtenRequest.id, isHttp2, trustForwarded: context.trustForwarded };
    return context.accessLog.begin(settings.accessLog, source, context.transport.turns.nowMs);
  }

  /** Begins to log the request of this connection. `request` is undefined if no endpoint gets the request. */
  protected beginLog(head: LoggedHead | undefined, request: EndpointRequest | undefined): void {
    if (head === undefined) this.onInvalidRequest();
    this.logged = this.startLog(this.upstream.route, head);
    if (this.logged !== undefined) this.logged.request = request;
  }

  /** Logs the request, whose answer is complete. `reason` says why the proxy answered, if the proxy did. */
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

  /** Whether a bandwidth limit makes the open request wait. */
  protected get isThrottled(): boolean {
    return this.#throttle.isThrottled;
  }

  onExpired(): void {
    // Most timeouts do not end the connection.
    this.timeouts.restart();
    if (this.#firstRequest === 'missing') this.#firstRequest = 'late';
    this.guarded(() => this.onTimeout());
  }

  protected override extendIdleDeadline(): void {
    if (this.hasRequest) this.timeouts.extendIdle();
  }

  /** Begins another idle timeout and returns true if the open request is throttled, because the request is not idle then. */
  protected extendIfThrottled(): boolean {
    return this.hasRequest && this.isThrottled && this.timeouts.extendThrottled();
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
      this.record = startClientRecord(this.context, upstream, { info: this.info, countsBytes: true });
      addToCounter(this.counters, CONNECTIONS, 1);
      addToCounter(this.counters, ACTIVE, 1);
      this.#firstRequest = 'valid';
      this.#throttle.moveTo(admission.limiters);
      this.timeouts.useIdleTimeout(upstream.route.settings.idleTimeoutMs);
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      upstream.service.sessions.add(this);
    } finally {
      former.release();
      if (wasCounted) countOutcome(counters, 'completed');
      addToCounter(counters, ACTIVE, -1);
    }
  }

  /** Ends this session, and gives its client to an HTTP/2 session. The client keeps its admission. */
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

  /** Reads the client again if reading was stopped and the bandwidth limits allow a read. */
  protected readClient(): void {
    if (!this.#hasEnded && !this.client.isReading && this.#throttle.mayRead('in', 0)) this.client.readStart();
  }

  protected guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  #release(): void {
    if (this.#unchargedOutput > 0) this.chargeSent();
    // An HTTP/2 session counts header blocks and DATA itself.
    if (this.isHttp2) this.dropUncounted();
    addToCounter(this.counters, RECEIVED, this.#uncountedInput);
    this.record?.addReceived(this.#uncountedInput);
    this.#uncountedInput = 0;
    this.timeouts.stop();
    this.upstream.service.sessions.delete(this);
    this.cancelRequest();
    this.endLog();
    this.#throttle.end();
    this.endCounting();
    this.record?.end();
  }
}
