// Relays one client connection to an endpoint. Counts the bytes, and passes FIN on as FIN and RST as RST. The class is
// long on purpose: each part that became a class of its own would cost one more object per connection.
import type { EndpointStats } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { Direction } from '../limits/limiter-state.ts';
import { SessionThrottle, type ThrottledReader } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import { startRecord } from '../metering/session-record.ts';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import { CountedConnection } from './counted-connection.ts';
import { type DownstreamInfo, upstreamPreambleFor } from './downstream-info.ts';
import type { RelayContext, Session } from './session.ts';
import { ticksFor } from './timeout-wheel.ts';

/**
 * How long after its start a session may begin a connection attempt to another endpoint, in multiples of the connect
 * timeout.
 */
const CONNECT_RETRY_WINDOW = 3;
/**
 * The number of consecutive idle timeouts for which a session may be throttled without a read. After these timeouts the
 * session is closed, because the client may be gone, and only a read would show this.
 */
const MAX_THROTTLED_IDLE_TIMEOUTS = 10;

export interface TcpSessionOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly counters: Float64Array;
  readonly admission: Admission;
}

export class TcpSession extends CountedConnection implements StreamEvents, Session, ThrottledReader {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #upstream: Upstream;
  readonly #downstreamInfo: DownstreamInfo;
  readonly #admission: Admission;
  readonly #throttle: SessionThrottle;
  readonly #idleTicks: number;
  readonly #retryDeadline: number;
  readonly #triedEndpoints: EndpointStats[] = [];
  #hasTriedExcluded = false;
  #endpointStream: TcpStream | undefined;
  #endpointStats: EndpointStats | undefined;
  #isConnected = false;
  #isEnded = false;
  #hasClientClosed = false;
  #hasEndpointClosed = false;
  /** How many consecutive idle timeouts have passed while the session was throttled. */
  #throttledIdleTimeouts = 0;

  constructor(client: TcpStream, info: DownstreamInfo, { context, upstream, counters, admission }: TcpSessionOptions) {
    const { settings } = upstream.route;
    super(client, { context, counters, tenant: admission.limiters.tenant });
    this.#downstreamInfo = info;
    this.#upstream = upstream;
    this.#admission = admission;
    this.#throttle = new SessionThrottle(context.shaper, admission.limiters, this);
    this.#idleTicks = ticksFor(settings.idleTimeoutMs);
    this.#retryDeadline = context.wheel.now + ticksFor(settings.connectTimeoutMs) * CONNECT_RETRY_WINDOW;
    this.record = startRecord(context, upstream.service, info);
    // The preread bytes of the client are counted already.
    this.record?.addReceived(info.prereadBytes.length);
    addToCounter(counters, CONNECTIONS, 1);
    addToCounter(counters, ACTIVE, 1);
  }

  protected override get endpointStream(): TcpStream | undefined {
    return this.#endpointStream;
  }

  protected override get isEnded(): boolean {
    return this.#isEnded;
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#endpointStats;
  }

  /**
   * Connects to an endpoint. Until the connection is established, the session reads nothing from the client, and the
   * client's bytes wait in the kernel.
   */
  start(): void {
    const { wheel } = this.context;
    this.#guarded(() => {
      this.#upstream.service.sessions.add(this);
      this.client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      this.client.accept(this);
      this.deadline = wheel.now + ticksFor(this.#upstream.route.settings.connectTimeoutMs);
      wheel.add(this);
      this.#connect('connect-failed');
    });
  }

  /**
   * Ends the session. Resets both streams unless the outcome is `completed`. The session no longer counts as active,
   * even if the reset throws.
   */
  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#release();
      if (outcome !== 'completed') this.#resetStreams();
      this.#log(outcome);
    } finally {
      // Nothing comes between these two lines: if the worker is terminated in between, the session counts twice, because
      // open sessions of a terminated worker count with the outcome `internal`.
      countOutcome(this.counters, outcome);
      addToCounter(this.counters, ACTIVE, -1);
    }
  }

  onExpired(): void {
    if (this.#throttle.isThrottled && this.#throttledIdleTimeouts < MAX_THROTTLED_IDLE_TIMEOUTS)
      this.#extendThrottledDeadline();
    else if (this.#isConnected) this.end('idle-timeout');
    else this.#guarded(() => this.#tryNextEndpoint('connect-timeout'));
  }

  /**
   * Tries another endpoint at once if the session is still connecting. Until then the session has sent no byte of the
   * client, so no byte is lost.
   */
  onEndpointUnavailable(): void {
    // If no further endpoint would be tried, the session keeps the current endpoint, which may still answer.
    if (this.#isEnded || this.#isConnected || !this.#mayRetry()) return;
    this.#guarded(() => {
      if (this.#upstream.hasUntriedEndpoint(this.#triedEndpoints)) this.#tryNextEndpoint('connect-failed');
    });
  }

  onConnect(stream: TcpStream): void {
    if (stream !== this.#endpointStream || this.#isEnded || this.#endpointStats === undefined) return;
    this.#isConnected = true;
    this.#upstream.onConnected(this.#endpointStats);
    this.extendIdleDeadline();
    // The wheel has the session in the slot of the connect timeout, but the idle timeout may end before the connect
    // timeout.
    if (this.deadline < this.wheelSlot) this.context.wheel.advance(this);
    this.#readUnlessThrottled(stream);
    const preamble = upstreamPreambleFor(this.#upstream.route.settings, this.#downstreamInfo);
    if (preamble.length === 0 || stream.write(preamble) === 0) this.#readUnlessThrottled(this.client);
  }

  onData(from: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    if (from === this.client) this.#sendToEndpoint(bytes);
    else if (from === this.#endpointStream) this.#sendToClient(bytes);
  }

  onEnd(from: TcpStream): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    this.#peerOf(from)?.shutdown();
  }

  onDrain(drained: TcpStream): void {
    if (this.#isEnded) return;
    this.extendIdleDeadline();
    const source = this.#peerOf(drained);
    if (source !== undefined) this.#readUnlessThrottled(source);
  }

  onClose(stream: TcpStream, code: string | undefined): void {
    if (this.#isEnded) return;
    const isClient = stream === this.client;
    if (!isClient && stream !== this.#endpointStream) return;
    if (!isClient && !this.#isConnected) {
      this.context.onConnectError(code);
      this.#guarded(() => this.#tryNextEndpoint('connect-failed', code));
    } else if (code !== undefined) this.end(isClient ? 'reset-by-client' : 'reset-by-endpoint');
    else this.#onCleanClose(isClient);
  }

  /**
   * Starts reading again in `direction`. If bytes are queued for the other side, `onDrain` starts reading when these
   * bytes are sent.
   */
  onReadAllowed(direction: Direction): void {
    const source = direction === 'in' ? this.client : this.#endpointStream;
    const target = direction === 'in' ? this.#endpointStream : this.client;
    if (source !== undefined && target?.awaitsDrain === false) this.#guarded(() => source.readStart());
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.context.onInternalError(thrown);
    this.end('internal');
  }

  /** Connects to the next endpoint. If there is none to try, ends the session with the outcome `failure`. */
  #connect(failure: Outcome): void {
    const endpointStats =
      this.#upstream.choose(this.#downstreamInfo.client, this.#triedEndpoints) ?? this.#chooseExcluded();
    if (endpointStats === undefined) {
      this.end(failure);
      return;
    }
    this.#triedEndpoints.push(endpointStats);
    this.#endpointStats = endpointStats;
    endpointStats.activeConnections += 1;
    this.#endpointStream = this.context.transport.connect(endpointStats.endpoint, this, this.currentWindow());
    this.#endpointStream.limitReadBytes?.(
      Math.min(this.#throttle.quantumBytes('out'), this.client.maxWriteBytes ?? Infinity),
    );
  }

  /**
   * Returns one excluded endpoint per session, when all healthy endpoints have failed, because an endpoint may have been
   * excluded by mistake.
   */
  #chooseExcluded(): EndpointStats | undefined {
    if (this.#hasTriedExcluded) return undefined;
    this.#hasTriedExcluded = true;
    return this.#upstream.chooseExcluded(this.#triedEndpoints);
  }

  #mayRetry(): boolean {
    return this.#triedEndpoints.length < MAX_ENDPOINT_ATTEMPTS && this.context.wheel.now < this.#retryDeadline;
  }

  /**
   * Gives up the current endpoint and connects to the next one. `code` is the errno name if the connection attempt has
   * failed, and undefined after a timeout or if the endpoint became unavailable.
   */
  #tryNextEndpoint(failure: Outcome, code?: string): void {
    const { wheel } = this.context;
    const failed = this.#endpointStream;
    this.#endpointStream = undefined;
    failed?.reset();
    if (this.#endpointStats !== undefined && !isLocalFailure(code)) this.#upstream.onConnectFailed(this.#endpointStats);
    this.#releaseEndpoint();
    if (!this.#mayRetry()) {
      this.end(failure);
      return;
    }
    this.deadline = wheel.now + ticksFor(this.#upstream.route.settings.connectTimeoutMs);
    wheel.advance(this);
    this.#connect(failure);
  }

  #release(): void {
    this.context.wheel.remove(this);
    this.#upstream.service.sessions.delete(this);
    this.#releaseEndpoint();
    this.#admission.release();
    this.#throttle.end();
    this.endCounting();
  }

  #log(outcome: Outcome): void {
    const { record } = this;
    record?.end();
    if (record?.isLogged !== true) return;
    const { accessLog } = this.context;
    const info = this.#downstreamInfo;
    const connection = {
      protocol: 'TCP',
      client: record.client,
      destination: info.destination,
      info,
      outcome,
      receivedBytes: record.receivedBytes,
      sentBytes: record.sentBytes,
      durationMs: accessLog.now() - record.startedAt,
      endpoint: this.#triedEndpoints.at(-1)?.endpoint,
      attempts: this.#triedEndpoints.length,
    } as const;
    accessLog.endConnection(connection, this.#upstream.service.entry, this.counters);
  }

  #resetStreams(): void {
    try {
      this.client.reset();
    } finally {
      this.#endpointStream?.reset();
    }
  }

  #releaseEndpoint(): void {
    if (this.#endpointStats !== undefined) this.#endpointStats.activeConnections -= 1;
    this.#endpointStats = undefined;
  }

  #sendToEndpoint(bytes: Uint8Array): void {
    addToCounter(this.counters, RECEIVED, bytes.length);
    this.record?.addReceived(bytes.length);
    if (this.#endpointStream === undefined) return;
    this.addBufferedBytes(bytes.length);
    this.#endpointStream.write(bytes);
    if (!this.#throttle.mayRead('in', bytes.length)) this.client.readStop();
    if (this.#endpointStream.awaitsDrain) this.pause(this.client);
  }

  #sendToClient(bytes: Uint8Array): void {
    this.writeToClient(bytes);
    if (!this.#throttle.mayRead('out', bytes.length)) this.#endpointStream?.readStop();
    if (this.client.awaitsDrain) this.pause(this.#endpointStream);
  }

  #onCleanClose(isClient: boolean): void {
    if (isClient) this.#hasClientClosed = true;
    else this.#hasEndpointClosed = true;
    if (this.#hasClientClosed && this.#hasEndpointClosed) this.end('completed');
  }

  #peerOf(stream: TcpStream): TcpStream | undefined {
    return stream === this.client ? this.#endpointStream : this.client;
  }

  /** Starts reading the stream unless it is throttled. `onReadAllowed` starts reading a throttled stream later. */
  #readUnlessThrottled(source: TcpStream): void {
    if (this.#throttle.mayRead(source === this.client ? 'in' : 'out', 0)) source.readStart();
  }

  /** Extends the deadline of a throttled session, because a throttled session is not idle. */
  #extendThrottledDeadline(): void {
    this.#throttledIdleTimeouts += 1;
    this.deadline = this.context.wheel.now + this.#idleTicks;
    this.context.wheel.add(this);
  }

  protected override extendIdleDeadline(): void {
    this.#throttledIdleTimeouts = 0;
    this.deadline = this.context.wheel.now + this.#idleTicks;
  }

  /**
   * Calls `run`, and ends the session if `run` throws. Needed for calls that do not come from a stream, because the
   * transport catches only the exceptions of a stream's event handlers.
   */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      this.onThrow(this.client, thrown);
    }
  }
}
