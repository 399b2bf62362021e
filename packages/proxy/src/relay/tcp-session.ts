// One client connection and its endpoint: bytes go across, are counted where they pass, and the end of either side is
// passed on as what it was (FIN as FIN, RST as RST). One long file: any part of it made an object of its own would be one
// more per connection, and most methods look at the state of both sides.
import type { EndpointStats } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { Direction } from '../limits/limiter-state.ts';
import { SessionThrottle, type ThrottledReader } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED, SENT } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { isLocalFailure } from '../upstream/connect-reports.ts';
import type { DownstreamInfo } from './downstream-info.ts';
import { upstreamPreambleFor } from './downstream-info.ts';
import type { RelayContext, RelayUpstream, Session } from './session.ts';
import { ticksFor } from './timeout-wheel.ts';

/** How many times its connect timeout a client is kept waiting while endpoint after endpoint fails. */
const CONNECT_RETRY_WINDOW = 3;
/** For how many idle timeouts a limit may hold it without a turn: its client may be gone, which only reading would show. */
const MAX_THROTTLED_IDLE_TIMEOUTS = 10;

export class TcpSession implements StreamEvents, Session, ThrottledReader {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly #context: RelayContext;
  readonly #upstream: RelayUpstream;
  /** Of the counters: fixed for the life of the connection, also when its Service changes hands meanwhile. */
  readonly #counters: Float64Array;
  readonly #client: TcpStream;
  readonly #downstreamInfo: DownstreamInfo;
  /** Its place under the limits. */
  readonly #grant: Admission;
  readonly #throttle: SessionThrottle;
  readonly #idleTicks: number;
  readonly #retryDeadline: number;
  readonly #triedEndpoints: EndpointStats[] = [];
  #endpointStream: TcpStream | undefined;
  #endpointStats: EndpointStats | undefined;
  #isConnected = false;
  #isEnded = false;
  #hasClientClosed = false;
  #hasEndpointClosed = false;
  /** Written for the client, not yet taken by the kernel: not yet sent. */
  #unsentBytes = 0;
  /** Idle timeouts in a row that it was held for. */
  #throttledIdleTimeouts = 0;

  constructor(
    client: TcpStream,
    arrived: DownstreamInfo,
    { context, home, row, grant }: { context: RelayContext; home: RelayUpstream; row: Float64Array; grant: Admission },
  ) {
    const { settings } = home.route;
    this.#client = client;
    this.#downstreamInfo = arrived;
    this.#context = context;
    this.#upstream = home;
    this.#counters = row;
    this.#grant = grant;
    this.#throttle = new SessionThrottle(context.shaper.limitersFor(grant.limiters), this);
    this.#idleTicks = ticksFor(settings.idleTimeoutMs);
    this.#retryDeadline = context.wheel.now + ticksFor(settings.connectTimeoutMs) * CONNECT_RETRY_WINDOW;
    addToCounter(row, CONNECTIONS, 1);
    addToCounter(row, ACTIVE, 1);
  }

  /** The endpoint that it goes to, or is trying to. */
  get endpointStats(): EndpointStats | undefined {
    return this.#endpointStats;
  }

  /** The client's bytes wait in the kernel until an endpoint has answered. */
  start(): void {
    const { wheel } = this.#context;
    this.#guarded(() => {
      this.#upstream.sessions.add(this);
      this.#client.limitReadBytes?.(this.#throttle.quantumBytes('in'));
      this.#client.accept(this);
      this.deadline = wheel.now + ticksFor(this.#upstream.route.settings.connectTimeoutMs);
      wheel.add(this);
      this.#connect('connect-failed');
    });
  }

  /** Ends both sides by RST, so that what the kernel still holds is discarded. Whatever throws: its slot is free after it. */
  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#release();
      countOutcome(this.#counters, outcome);
      if (outcome !== 'completed') this.#resetStreams();
    } finally {
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  onExpired(): void {
    if (this.#throttle.isThrottled && this.#throttledIdleTimeouts < MAX_THROTTLED_IDLE_TIMEOUTS)
      this.#extendThrottledDeadline();
    else if (this.#isConnected) this.end('idle-timeout');
    else this.#guarded(() => this.#tryNextEndpoint('connect-timeout'));
  }

  /** Nothing of the client was sent yet: where there is another endpoint, it need not wait for one that may be gone. */
  onEndpointUnavailable(): void {
    // Whoever has no further try may still be answered.
    if (this.#isEnded || this.#isConnected || this.#context.wheel.now >= this.#retryDeadline) return;
    this.#guarded(() => {
      if (this.#upstream.hasUntriedEndpoint(this.#triedEndpoints)) this.#tryNextEndpoint('connect-failed');
    });
  }

  onConnect(stream: TcpStream): void {
    if (stream !== this.#endpointStream || this.#isEnded || this.#endpointStats === undefined) return;
    this.#isConnected = true;
    this.#upstream.onConnected(this.#endpointStats);
    this.#extendIdleDeadline();
    // The idle timeout may be shorter than what was left to connect.
    if (this.deadline < this.wheelSlot) this.#context.wheel.advance(this);
    this.#readUnlessThrottled(stream);
    const first = upstreamPreambleFor(this.#upstream.route.settings, this.#downstreamInfo);
    if (first.length === 0 || stream.write(first) === 0) this.#readUnlessThrottled(this.#client);
  }

  onData(from: TcpStream, bytes: Uint8Array): void {
    if (this.#isEnded) return;
    this.#extendIdleDeadline();
    if (from === this.#client) this.#sendToEndpoint(bytes);
    else if (from === this.#endpointStream) this.#sendToClient(bytes);
  }

  onEnd(from: TcpStream): void {
    if (this.#isEnded) return;
    this.#extendIdleDeadline();
    this.#peerOf(from)?.shutdown();
  }

  onDrain(taken: TcpStream): void {
    if (this.#isEnded) return;
    this.#extendIdleDeadline();
    if (taken === this.#client) this.#countSent(0);
    const source = this.#peerOf(taken);
    if (source !== undefined) this.#readUnlessThrottled(source);
  }

  onClose(stream: TcpStream, code: string | undefined): void {
    if (this.#isEnded) return;
    const isClient = stream === this.#client;
    if (!isClient && stream !== this.#endpointStream) return;
    if (!isClient && !this.#isConnected) {
      this.#context.onConnectError(code);
      this.#guarded(() => this.#tryNextEndpoint('connect-failed', code));
    } else if (code !== undefined) this.end(isClient ? 'reset-by-client' : 'reset-by-endpoint');
    else this.#onCleanClose(isClient);
  }

  /** What waited for bytes per second may go on, unless its target has not taken the last ones yet. */
  onReadAllowed(direction: Direction): void {
    const source = direction === 'in' ? this.#client : this.#endpointStream;
    const target = direction === 'in' ? this.#endpointStream : this.#client;
    if (source !== undefined && target?.queuedBytes === 0) this.#guarded(() => source.readStart());
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    this.#context.onInternalError(thrown);
    this.end('internal');
  }

  #connect(otherwise: Outcome): void {
    const { client } = this.#downstreamInfo;
    // When all that should work have failed, what is known of the others proves as little.
    const load =
      this.#upstream.choose(client, this.#triedEndpoints) ?? this.#upstream.chooseExcluded(this.#triedEndpoints);
    if (load === undefined) {
      this.end(otherwise);
      return;
    }
    this.#triedEndpoints.push(load);
    this.#endpointStats = load;
    load.activeConnections += 1;
    this.#endpointStream = this.#context.transport.connect(load.endpoint, this);
    this.#endpointStream.limitReadBytes?.(
      Math.min(this.#throttle.quantumBytes('out'), this.#client.maxWriteBytes ?? Infinity),
    );
  }

  /** `code` as in errno; undefined: it did not answer in time. */
  #tryNextEndpoint(failure: Outcome, code?: string): void {
    const { wheel } = this.#context;
    const last = this.#endpointStream;
    this.#endpointStream = undefined;
    last?.reset();
    if (this.#endpointStats !== undefined && !isLocalFailure(code)) this.#upstream.onConnectFailed(this.#endpointStats);
    this.#releaseEndpoint();
    if (wheel.now >= this.#retryDeadline) {
      this.end(failure);
      return;
    }
    this.deadline = wheel.now + ticksFor(this.#upstream.route.settings.connectTimeoutMs);
    wheel.advance(this);
    this.#connect(failure);
  }

  #release(): void {
    this.#context.wheel.remove(this);
    this.#upstream.sessions.delete(this);
    this.#releaseEndpoint();
    this.#grant.release();
    this.#throttle.end();
    this.#countSent(this.#client.queuedBytes);
  }

  #resetStreams(): void {
    try {
      this.#client.reset();
    } finally {
      this.#endpointStream?.reset();
    }
  }

  #releaseEndpoint(): void {
    if (this.#endpointStats !== undefined) this.#endpointStats.activeConnections -= 1;
    this.#endpointStats = undefined;
  }

  #sendToEndpoint(bytes: Uint8Array): void {
    addToCounter(this.#counters, RECEIVED, bytes.length);
    if (this.#endpointStream === undefined) return;
    const queued = this.#endpointStream.write(bytes);
    if (!this.#throttle.mayRead('in', bytes.length) || queued > 0) this.#client.readStop();
  }

  #sendToClient(bytes: Uint8Array): void {
    this.#unsentBytes += bytes.length;
    const queued = this.#client.write(bytes);
    this.#countSent(queued);
    if (!this.#throttle.mayRead('out', bytes.length) || queued > 0) this.#endpointStream?.readStop();
  }

  #countSent(queued: number): void {
    if (this.#unsentBytes === queued) return;
    addToCounter(this.#counters, SENT, this.#unsentBytes - queued);
    this.#unsentBytes = queued;
  }

  #onCleanClose(isClient: boolean): void {
    if (isClient) this.#hasClientClosed = true;
    else this.#hasEndpointClosed = true;
    if (this.#hasClientClosed && this.#hasEndpointClosed) this.end('completed');
  }

  #peerOf(stream: TcpStream): TcpStream | undefined {
    return stream === this.#client ? this.#endpointStream : this.#client;
  }

  /** Unless its Service or tenant was too fast: then when its turn has come. */
  #readUnlessThrottled(source: TcpStream): void {
    if (this.#throttle.mayRead(source === this.#client ? 'in' : 'out', 0)) source.readStart();
  }

  /** It is not idle: it is not let. */
  #extendThrottledDeadline(): void {
    this.#throttledIdleTimeouts += 1;
    this.deadline = this.#context.wheel.now + this.#idleTicks;
    this.#context.wheel.add(this);
  }

  #extendIdleDeadline(): void {
    this.#throttledIdleTimeouts = 0;
    this.deadline = this.#context.wheel.now + this.#idleTicks;
  }

  /** For what no event of a stream has called, and is therefore not guarded there. */
  #guarded(act: () => void): void {
    try {
      act();
    } catch (thrown) {
      this.onThrow(this.#client, thrown);
    }
  }
}
