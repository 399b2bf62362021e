// What one client address and port sends to a listener, and what its endpoint answers, through a socket of its own: the
// endpoint tells clients apart by its port, and ICMP errors come back to the flow that caused them.
import { type Client, type EndpointLoad, UNUSED } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import { ACTIVE, CONNECTIONS, RECEIVED, SENT } from '../counters/columns.ts';
import { add, countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { ConnectionHome } from '../relay/connection-home.ts';
import type { Member } from '../relay/member.ts';
import { ticksFor } from '../relay/ticks.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import type { Lanes, Shaper } from '../shape/shaper.ts';
import type { UdpListener, UdpPeer, UdpTransport, UdpUpstream, UdpUpstreamEvents } from './transport.ts';

/** Where a flow belongs. Replaced by another one when its listener becomes another Service's. */
export interface FlowHome extends Omit<ConnectionHome, 'chooseUnused' | 'hasUntried'> {
  readonly group: { readonly row: Float64Array; readonly isCutOff: boolean; readonly service: FlowService };
}

interface FlowService {
  readonly uid: string;
  readonly tenant: string | null;
}

/** What a flow needs of its worker and listener. */
export interface FlowContext {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Member>;
  readonly shaper: Shaper;
  readonly listener: UdpListener;
  /** It has spoken in a new tick. */
  onStir(flow: Flow): void;
  onEnded(flow: Flow): void;
  onInternalError(thrown: unknown): void;
}

/** The endpoint's host says that nobody is there. Of other errors (too long, filtered) only the datagram dies. */
const GONE = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);
/** A datagram up to so long is kept until the endpoint has answered, to be sent to another one if need be. */
const KEPT_SIZE = 2_048;
/** To how many endpoints a flow turns in vain: one forged datagram must not knock at all of them. */
const TRIES = 4;

export class Flow implements Member, UdpPeer, UdpUpstreamEvents {
  deadline = 0;
  wheelSlot = 0;
  wheelAt = -1;
  memberAt = -1;
  readonly address: string;
  readonly port: number;
  readonly home: FlowHome;
  /** Who answers for it under the cap: the Service itself while its tenant is in dispute. */
  readonly tenant: string;
  /** Its place under the limits. */
  readonly #grant: Grant;
  readonly #lanes: Lanes;
  readonly #context: FlowContext;
  /** Fixed for the life of the flow, as that of a connection. */
  readonly #row: Float64Array;
  readonly #idleTicks: number;
  #load: EndpointLoad | undefined;
  #upstream: UdpUpstream | undefined;
  #tried: EndpointLoad[] = [];
  #unanswered: Uint8Array | undefined;
  #isAnswered = false;
  #isEnded = false;

  constructor(
    client: Client,
    { home, grant, context }: { readonly home: FlowHome; readonly grant: Grant; readonly context: FlowContext },
  ) {
    const { service, row } = home.group;
    this.address = client.address;
    this.port = client.port;
    this.home = home;
    this.tenant = service.tenant ?? service.uid;
    this.#grant = grant;
    this.#lanes = context.shaper.lanesFor(grant.budgets);
    this.#context = context;
    this.#row = row;
    this.#idleTicks = ticksFor(home.route.settings.udpIdleTimeoutMs);
    add(row, CONNECTIONS, 1);
    add(row, ACTIVE, 1);
    this.deadline = context.wheel.now + this.#idleTicks;
    home.members.add(this);
    context.wheel.add(this);
  }

  get load(): EndpointLoad | undefined {
    return this.#load;
  }

  /** One datagram of the client. */
  forward(bytes: Uint8Array): void {
    if (this.#isEnded || this.home.group.isCutOff) return;
    this.#touch();
    add(this.#row, RECEIVED, bytes.length);
    // Nobody can be told to wait: what is too fast is lost, as on any narrow link.
    if (!this.#lanes.in.takes(bytes.length)) return;
    if (!this.#isAnswered) this.#unanswered = bytes.length <= KEPT_SIZE ? bytes : undefined;
    this.#send(bytes);
  }

  /** One datagram of the endpoint. */
  onMessage(bytes: Uint8Array): void {
    if (this.#isEnded || this.home.group.isCutOff) return;
    this.#touch();
    if (!this.#isAnswered) this.#answered();
    if (this.#lanes.out.takes(bytes.length)) this.#context.listener.send(bytes, this);
  }

  /** Not when it has ended: what was its row may be another tenant's by now. */
  onSent(bytes: number): void {
    if (!this.#isEnded) add(this.#row, SENT, bytes);
  }

  /** Of what was sent before; the endpoint may have been the right one until then. */
  onError(code: string): void {
    if (this.#isEnded || !GONE.has(code)) return;
    const kept = this.#unanswered;
    if (this.#leaveFailed() && kept !== undefined) this.#send(kept);
  }

  /** The next datagram of the client moves it. */
  onEndpointLeft(): void {}

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
      this.home.members.delete(this);
      this.#unanswered = undefined;
      this.#grant.release();
      this.#context.onEnded(this);
      this.#leave();
    } finally {
      countOutcome(this.#row, outcome);
      add(this.#row, ACTIVE, -1);
    }
  }

  /** To the endpoint of the moment. Ends the flow when there is none. */
  #send(bytes: Uint8Array): void {
    for (;;) {
      const upstream = this.#upstreamNow();
      if (upstream === undefined) return;
      const code = upstream.send(bytes);
      if (code === undefined || !GONE.has(code)) return;
      if (!this.#leaveFailed()) return;
    }
  }

  /** Another one at once when its endpoint has left or does not work, also while the client keeps its port. */
  #upstreamNow(): UdpUpstream | undefined {
    if (this.#upstream !== undefined) {
      if (this.#load?.rank !== UNUSED) return this.#upstream;
      this.#leave();
      this.#tried = [];
    }
    while (this.#tried.length < TRIES) {
      const load = this.home.choose(this, this.#tried);
      if (load === undefined) break;
      this.#tried.push(load);
      this.#upstream = this.#context.transport.connect(load.endpoint, this);
      if (this.#upstream === undefined) continue;
      this.#load = load;
      load.active += 1;
      return this.#upstream;
    }
    this.end(this.#tried.length > 0 ? 'connect-failed' : 'no-endpoints');
    return undefined;
  }

  /** Its endpoint does not listen. False: no other one is left, and the flow has ended. */
  #leaveFailed(): boolean {
    const failed = this.#load;
    if (failed !== undefined) this.home.onConnectFailed(failed);
    this.#isAnswered = false;
    this.#leave();
    return this.#upstreamNow() !== undefined;
  }

  #leave(): void {
    this.#upstream?.close();
    this.#upstream = undefined;
    if (this.#load !== undefined) this.#load.active -= 1;
    this.#load = undefined;
  }

  #answered(): void {
    this.#isAnswered = true;
    this.#unanswered = undefined;
    // Only the one that has answered was right; when it fails, all others are to be asked.
    if (this.#load === undefined) return;
    this.#tried = [this.#load];
    this.home.onConnected(this.#load);
  }

  /** The order of who has to go first is kept by ticks: not more often than once in each is anything moved. */
  #touch(): void {
    const deadline = this.#context.wheel.now + this.#idleTicks;
    if (deadline === this.deadline) return;
    this.deadline = deadline;
    this.#context.onStir(this);
  }
}
