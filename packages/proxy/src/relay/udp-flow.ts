// Relays the datagrams of one client address and port. Each flow has its own socket to its endpoint, so that the
// endpoint can distinguish clients by the source port, and an ICMP error reaches the flow whose datagram caused the
// error.
import { type EndpointStats, EXCLUDED } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { BandwidthLimiters, Shaper } from '../limits/shaper.ts';
import { ACTIVE, addToCounter, CONNECTIONS, countOutcome, RECEIVED, SENT } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import { type RecordContext, type SessionRecord, startRecord } from '../metering/session-record.ts';
import type { SocketAddress } from '../transport/tcp-transport.ts';
import {
  NOT_SENT,
  type UdpEndpointSocket,
  type UdpEndpointSocketEvents,
  type UdpListenSocket,
  type UdpRecipient,
  type UdpTransport,
} from '../transport/udp-transport.ts';
import { MAX_ENDPOINT_ATTEMPTS, type Upstream } from '../upstream/upstream.ts';
import type { Session } from './session.ts';
import { type TimeoutWheel, ticksFor } from './timeout-wheel.ts';
import type { UdpClient } from './udp-flow-table.ts';

/** The parts of the worker and of the listener that a flow uses. */
export interface FlowContext extends RecordContext {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly listener: UdpListenSocket;
  /** The address of the listener. */
  readonly destination: SocketAddress;
  /** Called for the first datagram of each tick, in either direction. */
  onActivity(flow: UdpFlow): void;
  onEnded(flow: UdpFlow): void;
  onInternalError(thrown: unknown): void;
}

/**
 * The error codes after which a flow leaves its endpoint. After any other error, for example because a datagram is too
 * long or filtered, only the datagram is lost.
 */
const ENDPOINT_GONE_CODES = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);
/**
 * The maximum size of a datagram that a flow retains. A flow retains the client's last datagram until the endpoint
 * answers. If the endpoint fails, the flow sends the retained datagram to another endpoint.
 */
const MAX_RETAINED_DATAGRAM_BYTES = 2_048;

export interface UdpFlowOptions {
  readonly upstream: Upstream;
  readonly admission: Admission;
  readonly context: FlowContext;
}

export class UdpFlow implements Session, UdpClient, UdpRecipient, UdpEndpointSocketEvents {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly address: string;
  readonly host: number | string;
  readonly port: number;
  readonly upstream: Upstream;
  /** The tenant whose limit of flows applies to this flow, or the Service's UID while two policies claim the tenant. */
  readonly tenant: string;
  readonly #admission: Admission;
  readonly #bandwidth: BandwidthLimiters;
  readonly #context: FlowContext;
  /** The counters of this flow. They do not change, even if the Service gets other counters later. */
  readonly #counters: Float64Array;
  readonly #idleTicks: number;
  /** Undefined if this flow is neither logged nor counted for its client. */
  readonly #record: SessionRecord | undefined;
  #endpointStats: EndpointStats | undefined;
  #endpointSocket: UdpEndpointSocket | undefined;
  #triedEndpoints: EndpointStats[] = [];
  /** Memory for the retained datagram, which is used again until the first answer. */
  #retainedMemory: Uint8Array | undefined;
  /** -1 if no datagram is retained. */
  #retainedLength = -1;
  #isAnswered = false;
  #isEnded = false;

  constructor(client: UdpClient, { upstream, admission, context }: UdpFlowOptions) {
    const { entry, counters, sessions } = upstream.service;
    this.address = client.address;
    this.host = client.host;
    this.port = client.port;
    this.upstream = upstream;
    this.tenant = entry.tenant ?? entry.uid;
    this.#admission = admission;
    this.#bandwidth = context.shaper.limitersFor(admission.limiters);
    this.#context = context;
    this.#counters = counters;
    this.#idleTicks = ticksFor(upstream.route.settings.udpIdleTimeoutMs);
    this.#record = startRecord(context, upstream.service, { client });
    addToCounter(counters, CONNECTIONS, 1);
    addToCounter(counters, ACTIVE, 1);
    this.deadline = context.wheel.now + this.#idleTicks;
    sessions.add(this);
    context.wheel.add(this);
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#endpointStats;
  }

  /** Sends a datagram from the client to the endpoint. */
  forward(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    addToCounter(this.#counters, RECEIVED, bytes.length);
    this.#record?.addReceived(bytes.length);
    // A UDP sender cannot be paused, so datagrams above the rate are dropped.
    if (!this.#bandwidth.in.tryTake(bytes.length)) return;
    if (!this.#isAnswered) this.#retain(bytes);
    this.#currentEndpointSocket()?.send(bytes);
  }

  /** Sends a datagram from the endpoint to the client. */
  onMessage(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    if (!this.#isAnswered) this.#onFirstAnswer();
    if (this.#bandwidth.out.tryTake(bytes.length)) this.#context.listener.send(bytes, this);
  }

  /**
   * Counts the bytes as sent. Does nothing after the end of the flow, because the counters may belong to another tenant
   * by then.
   */
  onSent(bytes: number): void {
    if (this.#isEnded) return;
    addToCounter(this.#counters, SENT, bytes);
    this.#record?.addSent(bytes);
  }

  /**
   * Moves the flow to another endpoint if its endpoint is gone, and sends the failed datagram to the new endpoint. The
   * error may be the ICMP error of an earlier datagram, even if the endpoint has answered other datagrams.
   */
  onError(code: string, unsent?: Uint8Array): void {
    if (this.#isEnded) return;
    // An earlier call of `onError` has moved the flow to another endpoint. Sends this datagram there, too.
    if (code === NOT_SENT && unsent !== undefined) this.#currentEndpointSocket()?.send(unsent);
    if (!ENDPOINT_GONE_CODES.has(code)) return;
    // If there is an `unsent` datagram, the retained datagram is not sent again here: it is `unsent`, or it was sent before
    // `unsent`, or it follows with the code `NOT_SENT`.
    const bytes = unsent ?? this.#takeRetained();
    const socket = this.#leaveFailedEndpoint();
    if (bytes !== undefined) socket?.send(bytes);
  }

  /** Does nothing, because the client's next datagram moves the flow to another endpoint. */
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
    // Sends the queued answers now, because `onSent` counts nothing after the end of the flow.
    this.#context.listener.flush();
    this.#isEnded = true;
    const endpointStats = this.#endpointStats ?? this.#triedEndpoints.at(-1);
    try {
      this.#context.wheel.remove(this);
      this.upstream.service.sessions.delete(this);
      this.#releaseRetained();
      this.#admission.release();
      this.#context.onEnded(this);
      this.#leaveEndpoint();
      this.#log(outcome, endpointStats);
    } finally {
      countOutcome(this.#counters, outcome);
      addToCounter(this.#counters, ACTIVE, -1);
    }
  }

  #log(outcome: Outcome, endpointStats: EndpointStats | undefined): void {
    const record = this.#record;
    record?.end();
    if (record?.isLogged !== true) return;
    const { accessLog, destination } = this.#context;
    const flow = {
      protocol: 'UDP',
      client: record.client,
      destination,
      outcome,
      receivedBytes: record.receivedBytes,
      sentBytes: record.sentBytes,
      durationMs: accessLog.now() - record.startedAt,
      endpoint: endpointStats?.endpoint,
      attempts: this.#triedEndpoints.length,
    } as const;
    accessLog.endConnection(flow, this.upstream.service.entry, this.#counters);
  }

  #retain(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#retainedLength = -1;
    if (length > MAX_RETAINED_DATAGRAM_BYTES) return;
    if (this.#retainedMemory === undefined || this.#retainedMemory.length < length) {
      this.#retainedMemory = new Uint8Array(length);
    }
    this.#retainedMemory.set(bytes);
    this.#retainedLength = length;
  }

  /** Returns a copy of the retained datagram, because the next datagram may be retained before the copy is sent. */
  #takeRetained(): Uint8Array | undefined {
    return this.#retainedLength < 0 ? undefined : this.#retainedMemory?.slice(0, this.#retainedLength);
  }

  #releaseRetained(): void {
    this.#retainedMemory = undefined;
    this.#retainedLength = -1;
  }

  /**
   * Returns the flow's socket to its endpoint. If the flow has no endpoint, or its endpoint is excluded (has left the
   * Service or fails its checks), chooses another endpoint. If no endpoint can be tried, ends the flow and returns
   * undefined.
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

  /**
   * Reports the failed endpoint, moves the flow to another endpoint, and returns the socket. Returns undefined if no
   * endpoint is left; the flow has then ended.
   */
  #leaveFailedEndpoint(): UdpEndpointSocket | undefined {
    const failed = this.#endpointStats;
    if (failed !== undefined) this.upstream.onConnectFailed(failed);
    this.#isAnswered = false;
    this.#leaveEndpoint();
    return this.#currentEndpointSocket();
  }

  #leaveEndpoint(): void {
    this.#endpointSocket?.close();
    this.#endpointSocket = undefined;
    if (this.#endpointStats !== undefined) this.#endpointStats.activeConnections -= 1;
    this.#endpointStats = undefined;
  }

  #onFirstAnswer(): void {
    this.#isAnswered = true;
    this.#releaseRetained();
    // If this endpoint fails later, all other endpoints may be tried again.
    if (this.#endpointStats === undefined) return;
    this.#triedEndpoints = [this.#endpointStats];
    this.upstream.onConnected(this.#endpointStats);
  }

  /**
   * Extends the deadline. Reports activity at most once per tick, which is precise enough to decide which flow to
   * evict.
   */
  #touch(): void {
    const deadline = this.#context.wheel.now + this.#idleTicks;
    if (deadline === this.deadline) return;
    this.deadline = deadline;
    this.#context.onActivity(this);
  }
}
