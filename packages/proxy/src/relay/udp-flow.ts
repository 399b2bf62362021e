// Relays the datagrams of one client address and port. Each flow has its own socket to its endpoint, so that the endpoint can
// tell clients apart by the source port, and ICMP errors reach the flow that caused them.
import { type Client, type EndpointStats, EXCLUDED } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { BandwidthLimiters, Shaper } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED, SENT } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type {
  UdpEndpointSocket,
  UdpEndpointSocketEvents,
  UdpListenSocket,
  UdpRecipient,
  UdpTransport,
} from '../transport/udp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Session } from './session.ts';
import { type TimeoutWheel, ticksFor } from './timeout-wheel.ts';

/** The parts of its worker and listener that a flow uses. */
export interface FlowContext {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly listener: UdpListenSocket;
  /** Called at the first datagram of each tick, in either direction. */
  onActivity(flow: UdpFlow): void;
  onEnded(flow: UdpFlow): void;
  onInternalError(thrown: unknown): void;
}

/**
 * The errors after which a flow leaves its endpoint. After other errors (too long, filtered) only the datagram is lost.
 */
const ENDPOINT_GONE_CODES = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);
/**
 * The maximum size of a retained datagram. The last datagram is kept until the endpoint answers, and sent to another
 * endpoint if this one fails.
 */
const MAX_RETAINED_DATAGRAM_BYTES = 2_048;
/**
 * The maximum number of endpoints that are tried for one datagram. It limits what an attacker can probe with a forged
 * datagram.
 */
const MAX_ENDPOINT_ATTEMPTS = 4;

export interface UdpFlowOptions {
  readonly upstream: Upstream;
  readonly admission: Admission;
  readonly context: FlowContext;
}

export class UdpFlow implements Session, UdpRecipient, UdpEndpointSocketEvents {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly address: string;
  readonly port: number;
  readonly upstream: Upstream;
  /** The tenant whose flows are counted together; the Service's UID while its tenant is disputed. */
  readonly tenant: string;
  readonly #admission: Admission;
  readonly #bandwidth: BandwidthLimiters;
  readonly #context: FlowContext;
  /** A flow keeps its counters even if its Service gets other counters meanwhile. */
  readonly #counters: Float64Array;
  readonly #idleTicks: number;
  #endpointStats: EndpointStats | undefined;
  #endpointSocket: UdpEndpointSocket | undefined;
  #triedEndpoints: EndpointStats[] = [];
  #retainedDatagram: Uint8Array | undefined;
  #isAnswered = false;
  #isEnded = false;

  constructor(client: Client, { upstream, admission, context }: UdpFlowOptions) {
    const { entry, counters, sessions } = upstream.service;
    this.address = client.address;
    this.port = client.port;
    this.upstream = upstream;
    this.tenant = entry.tenant ?? entry.uid;
    this.#admission = admission;
    this.#bandwidth = context.shaper.limitersFor(admission.limiters);
    this.#context = context;
    this.#counters = counters;
    this.#idleTicks = ticksFor(upstream.route.settings.udpIdleTimeoutMs);
    addToCounter(counters, CONNECTIONS, 1);
    addToCounter(counters, ACTIVE, 1);
    this.deadline = context.wheel.now + this.#idleTicks;
    sessions.add(this);
    context.wheel.add(this);
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#endpointStats;
  }

  /** Sends a datagram of the client to the endpoint. */
  forward(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    addToCounter(this.#counters, RECEIVED, bytes.length);
    // A UDP sender cannot be paused, so datagrams above the rate are dropped.
    if (!this.#bandwidth.in.tryTake(bytes.length)) return;
    if (!this.#isAnswered) this.#retainedDatagram = bytes.length <= MAX_RETAINED_DATAGRAM_BYTES ? bytes : undefined;
    this.#send(bytes);
  }

  /** Sends a datagram of the endpoint to the client. */
  onMessage(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    if (!this.#isAnswered) this.#onFirstAnswer();
    if (this.#bandwidth.out.tryTake(bytes.length)) this.#context.listener.send(bytes, this);
  }

  /**
   * Counts sent bytes. Counts nothing after the end of the flow, because the counters may belong to another tenant by
   * then.
   */
  onSent(bytes: number): void {
    if (!this.#isEnded) addToCounter(this.#counters, SENT, bytes);
  }

  /** Called for an ICMP error of an earlier datagram. The endpoint may have answered before. */
  onError(code: string): void {
    if (this.#isEnded || !ENDPOINT_GONE_CODES.has(code)) return;
    const retained = this.#retainedDatagram;
    if (this.#leaveFailedEndpoint() && retained !== undefined) this.#send(retained);
  }

  /** Does nothing, because the client's next datagram goes to another endpoint. */
  onEndpointUnavailable(): void {}

  onExpired(): void {
    this.end('idle-timeout');
  }

  onThrow(thrown: unknown): void {
    this.#context.onInternalError(thrown);
    this.end('internal');
  }

  end(outcome: Outcome): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    try {
      this.#context.wheel.remove(this);
      this.upstream.service.sessions.delete(this);
      this.#retainedDatagram = undefined;
      this.#admission.release();
      this.#context.onEnded(this);
      this.#leaveEndpoint();
    } finally {
      countOutcome(this.#counters, outcome);
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  /** Sends to the current endpoint, or to the next one if it fails. Ends the flow if no endpoint is left. */
  #send(bytes: Uint8Array): void {
    for (;;) {
      const socket = this.#currentEndpointSocket();
      if (socket === undefined) return;
      const code = socket.send(bytes);
      if (code === undefined || !ENDPOINT_GONE_CODES.has(code)) return;
      if (!this.#leaveFailedEndpoint()) return;
    }
  }

  /**
   * Returns the socket to the flow's endpoint. If the endpoint is excluded (it has left the Service or fails its
   * checks), the flow moves to another endpoint. Ends the flow and returns undefined if no endpoint can be tried.
   */
  #currentEndpointSocket(): UdpEndpointSocket | undefined {
    if (this.#endpointSocket !== undefined) {
      if (this.#endpointStats?.tier !== EXCLUDED) return this.#endpointSocket;
      this.#leaveEndpoint();
      this.#triedEndpoints = [];
    }
    while (this.#triedEndpoints.length < MAX_ENDPOINT_ATTEMPTS) {
      const endpointStats = this.upstream.choose(this, this.#triedEndpoints);
      if (endpointStats === undefined) break;
      this.#triedEndpoints.push(endpointStats);
      this.#endpointSocket = this.#context.transport.connect(endpointStats.endpoint, this);
      if (this.#endpointSocket === undefined) continue;
      this.#endpointStats = endpointStats;
      endpointStats.activeConnections += 1;
      return this.#endpointSocket;
    }
    this.end(this.#triedEndpoints.length > 0 ? 'connect-failed' : 'no-endpoints');
    return undefined;
  }

  /** Moves to another endpoint. Returns false if none is left and the flow has ended. */
  #leaveFailedEndpoint(): boolean {
    const failed = this.#endpointStats;
    if (failed !== undefined) this.upstream.onConnectFailed(failed);
    this.#isAnswered = false;
    this.#leaveEndpoint();
    return this.#currentEndpointSocket() !== undefined;
  }

  #leaveEndpoint(): void {
    this.#endpointSocket?.close();
    this.#endpointSocket = undefined;
    if (this.#endpointStats !== undefined) this.#endpointStats.activeConnections -= 1;
    this.#endpointStats = undefined;
  }

  #onFirstAnswer(): void {
    this.#isAnswered = true;
    this.#retainedDatagram = undefined;
    // If an endpoint that has answered fails later, all other endpoints may be tried.
    if (this.#endpointStats === undefined) return;
    this.#triedEndpoints = [this.#endpointStats];
    this.upstream.onConnected(this.#endpointStats);
  }

  /** Reports activity at most once per tick, because the order of eviction has the precision of a tick. */
  #touch(): void {
    const deadline = this.#context.wheel.now + this.#idleTicks;
    if (deadline === this.deadline) return;
    this.deadline = deadline;
    this.#context.onActivity(this);
  }
}
