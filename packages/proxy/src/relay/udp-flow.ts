// What one client address and port sends to a listener, and what its endpoint answers, through a socket of its own: the
// endpoint tells clients apart by its port, and ICMP errors come back to the flow that caused them.
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
import type { RelayUpstream, Session } from './session.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';
import { ticksFor } from './timeout-wheel.ts';

/** Where a flow belongs. Replaced by another one when its listener becomes another Service's. */
export interface FlowUpstream extends Omit<RelayUpstream, 'chooseExcluded' | 'hasUntriedEndpoint'> {
  readonly service: { readonly counters: Float64Array; readonly isSuspended: boolean; readonly entry: FlowService };
}

interface FlowService {
  readonly uid: string;
  readonly tenant: string | null;
}

/** What a flow needs of its worker and listener. */
export interface FlowContext {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly listener: UdpListenSocket;
  /** It has spoken in a new tick. */
  onActivity(flow: UdpFlow): void;
  onEnded(flow: UdpFlow): void;
  onInternalError(thrown: unknown): void;
}

/** The endpoint's host says that nobody is there. Of other errors (too long, filtered) only the datagram dies. */
const ENDPOINT_GONE_CODES = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);
/** A datagram up to so long is kept until the endpoint has answered, to be sent to another one if need be. */
const MAX_RETAINED_DATAGRAM_BYTES = 2_048;
/** To how many endpoints a flow turns in vain: one forged datagram must not knock at all of them. */
const MAX_ENDPOINT_ATTEMPTS = 4;

export class UdpFlow implements Session, UdpRecipient, UdpEndpointSocketEvents {
  deadline = 0;
  wheelSlot = 0;
  wheelIndex = -1;
  sessionIndex = -1;
  readonly address: string;
  readonly port: number;
  readonly upstream: FlowUpstream;
  /** Who answers for it under the cap: the Service itself while its tenant is in dispute. */
  readonly tenant: string;
  /** Its place under the limits. */
  readonly #grant: Admission;
  readonly #shapers: BandwidthLimiters;
  readonly #context: FlowContext;
  /** Fixed for the life of the flow, as that of a connection. */
  readonly #row: Float64Array;
  readonly #idleTicks: number;
  #endpointStats: EndpointStats | undefined;
  #endpointSocket: UdpEndpointSocket | undefined;
  #tried: EndpointStats[] = [];
  #retainedDatagram: Uint8Array | undefined;
  #isAnswered = false;
  #isEnded = false;

  constructor(
    client: Client,
    { home, grant, context }: { readonly home: FlowUpstream; readonly grant: Admission; readonly context: FlowContext },
  ) {
    const { entry, counters: row } = home.service;
    this.address = client.address;
    this.port = client.port;
    this.upstream = home;
    this.tenant = entry.tenant ?? entry.uid;
    this.#grant = grant;
    this.#shapers = context.shaper.limitersFor(grant.limiters);
    this.#context = context;
    this.#row = row;
    this.#idleTicks = ticksFor(home.route.settings.udpIdleTimeoutMs);
    addToCounter(row, CONNECTIONS, 1);
    addToCounter(row, ACTIVE, 1);
    this.deadline = context.wheel.now + this.#idleTicks;
    home.sessions.add(this);
    context.wheel.add(this);
  }

  get endpointStats(): EndpointStats | undefined {
    return this.#endpointStats;
  }

  /** One datagram of the client. */
  forward(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    addToCounter(this.#row, RECEIVED, bytes.length);
    // Nobody can be told to wait: what is too fast is lost, as on any narrow link.
    if (!this.#shapers.in.tryTake(bytes.length)) return;
    if (!this.#isAnswered) this.#retainedDatagram = bytes.length <= MAX_RETAINED_DATAGRAM_BYTES ? bytes : undefined;
    this.#send(bytes);
  }

  /** One datagram of the endpoint. */
  onMessage(bytes: Uint8Array): void {
    if (this.#isEnded || this.upstream.service.isSuspended) return;
    this.#touch();
    if (!this.#isAnswered) this.#onFirstAnswer();
    if (this.#shapers.out.tryTake(bytes.length)) this.#context.listener.send(bytes, this);
  }

  /** Not when it has ended: what was its row may be another tenant's by now. */
  onSent(bytes: number): void {
    if (!this.#isEnded) addToCounter(this.#row, SENT, bytes);
  }

  /** Of what was sent before; the endpoint may have been the right one until then. */
  onError(code: string): void {
    if (this.#isEnded || !ENDPOINT_GONE_CODES.has(code)) return;
    const kept = this.#retainedDatagram;
    if (this.#leaveFailedEndpoint() && kept !== undefined) this.#send(kept);
  }

  /** The next datagram of the client moves it. */
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
      this.upstream.sessions.delete(this);
      this.#retainedDatagram = undefined;
      this.#grant.release();
      this.#context.onEnded(this);
      this.#leaveEndpoint();
    } finally {
      countOutcome(this.#row, outcome);
      addToCounter(this.#row, ACTIVE, -1);
    }
  }

  /** To the endpoint of the moment. Ends the flow when there is none. */
  #send(bytes: Uint8Array): void {
    for (;;) {
      const upstream = this.#currentEndpointSocket();
      if (upstream === undefined) return;
      const code = upstream.send(bytes);
      if (code === undefined || !ENDPOINT_GONE_CODES.has(code)) return;
      if (!this.#leaveFailedEndpoint()) return;
    }
  }

  /** Another one at once when its endpoint has left or does not work, also while the client keeps its port. */
  #currentEndpointSocket(): UdpEndpointSocket | undefined {
    if (this.#endpointSocket !== undefined) {
      if (this.#endpointStats?.tier !== EXCLUDED) return this.#endpointSocket;
      this.#leaveEndpoint();
      this.#tried = [];
    }
    while (this.#tried.length < MAX_ENDPOINT_ATTEMPTS) {
      const load = this.upstream.choose(this, this.#tried);
      if (load === undefined) break;
      this.#tried.push(load);
      this.#endpointSocket = this.#context.transport.connect(load.endpoint, this);
      if (this.#endpointSocket === undefined) continue;
      this.#endpointStats = load;
      load.activeConnections += 1;
      return this.#endpointSocket;
    }
    this.end(this.#tried.length > 0 ? 'connect-failed' : 'no-endpoints');
    return undefined;
  }

  /** Its endpoint does not listen. False: no other one is left, and the flow has ended. */
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
    // Only the one that has answered was right; when it fails, all others are to be asked.
    if (this.#endpointStats === undefined) return;
    this.#tried = [this.#endpointStats];
    this.upstream.onConnected(this.#endpointStats);
  }

  /** The order of who has to go first is kept by ticks: not more often than once in each is anything moved. */
  #touch(): void {
    const deadline = this.#context.wheel.now + this.#idleTicks;
    if (deadline === this.deadline) return;
    this.deadline = deadline;
    this.#context.onActivity(this);
  }
}
