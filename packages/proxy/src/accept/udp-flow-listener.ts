import { type ListenerKey, routeRefusalFor } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { Shaper } from '../limits/shaper.ts';
import { countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { RecordContext } from '../metering/session-record.ts';
import type { ListenerPeers, PeerWorkers } from '../relay/peer-workers.ts';
import type { Session } from '../relay/session.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { type FlowContext, UdpFlow } from '../relay/udp-flow.ts';
import { FlowTable, type TenantFlows, type UdpClient } from '../relay/udp-flow-table.ts';
import { hostText } from '../transport/peer-address.ts';
import type { SocketAddress } from '../transport/tcp-transport.ts';
import type {
  UdpBindOptions,
  UdpListenSocket,
  UdpListenSocketEvents,
  UdpTransport,
} from '../transport/udp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { hasAccessLog, NOTHING_RELAYED } from './refuse.ts';

export interface UdpFlowListenerOptions extends RecordContext {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly tenants: TenantFlows<UdpFlow>;
  /** The peer workers to which datagrams can be forwarded. Absent if there are none. */
  readonly peerWorkers?: PeerWorkers | undefined;
  /** Returns the upstream of the Service that has the listener now, or undefined if no Service has it. */
  upstream(): Upstream | undefined;
  /** Takes one new flow of the upstream's tenant from the budget, or returns false if the budget is used up. */
  takeNewFlow(upstream: Upstream): boolean;
  /** Admits one more flow of the Service with this UID, or returns why the flow is refused. */
  admit(uid: string): Admission | Outcome;
  /** Whether this proxy serves UDP at the client's address and port. */
  isServed(client: UdpClient): boolean;
  /** Returns the counters of datagrams that belong to no Service. */
  unroutedCounters(): Float64Array;
  /** Ends these flows in batches. */
  terminate(flows: Iterable<Session>, outcome: Outcome): void;
  onListening(): void;
  onFailed(code: string): void;
  onInternalError(thrown: unknown): void;
}

/** Passes each datagram of one UDP listener to the flow of the client. Opens a flow if the client has none. */
export class UdpFlowListener implements UdpListenSocketEvents {
  readonly #options: UdpFlowListenerOptions;
  readonly #address: SocketAddress;
  readonly #flows = new FlowTable<UdpFlow>();
  readonly #listener: UdpListenSocket;
  readonly #context: FlowContext;
  readonly #peers: ListenerPeers | undefined;

  constructor(address: UdpBindOptions & { readonly key: ListenerKey }, options: UdpFlowListenerOptions) {
    const { transport, wheel, shaper, tenants, accessLog, topClients, peerWorkers } = options;
    this.#options = options;
    this.#address = address;
    this.#peers = peerWorkers?.join(address.key, (bytes, client) => this.#onForwarded(bytes, client));
    this.#listener = transport.bind(address, this);
    this.#context = {
      transport,
      wheel,
      shaper,
      listener: this.#listener,
      destination: address,
      accessLog,
      topClients,
      onActivity: (flow) => {
        this.#flows.touch(flow);
        tenants.touch(flow);
      },
      onEnded: (flow) => {
        this.#flows.remove(flow);
        tenants.remove(flow);
        this.#peers?.release(flow);
      },
      onInternalError: (thrown) => options.onInternalError(thrown),
    };
  }

  /**
   * Closes the listener and ends its flows, because answers to clients must come from the socket that is now closed.
   */
  close(): void {
    this.#listener.close();
    this.#peers?.leave();
    this.#options.terminate(this.#flows.all(), 'listener-closed');
  }

  onListening(): void {
    this.#options.onListening();
  }

  onFailed(code: string): void {
    this.#peers?.leave();
    this.#options.onFailed(code);
  }

  onMessage(bytes: Uint8Array, host: number | string, port: number): void {
    const flow = this.#flows.find(host, port);
    if (flow !== undefined && flow.upstream === this.#options.upstream()) {
      forwardGuarded(flow, bytes);
      return;
    }
    const client = { address: hostText(host), host, port };
    if (flow !== undefined || this.#peers?.forward(bytes, client) !== true) this.#forward(bytes, client);
  }

  /** Returns how many datagrams the kernel has dropped since the last call. */
  takeDropped(): number {
    return this.#listener.takeDropped();
  }

  onThrow(thrown: unknown): void {
    this.#options.onInternalError(thrown);
    countOutcome(this.#options.unroutedCounters(), 'internal');
  }

  /**
   * Handles a datagram from a peer worker. Catches exceptions here, because a message channel does not catch them. For
   * datagrams from a socket, the transport catches exceptions.
   */
  #onForwarded(bytes: Uint8Array, client: UdpClient): void {
    try {
      this.#forward(bytes, client);
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  /**
   * Sends a datagram to its flow. Opens a new flow if the client has none, or if the client's flow belongs to a Service
   * that no longer has the listener.
   */
  #forward(bytes: Uint8Array, client: UdpClient): void {
    const upstream = this.#options.upstream();
    const known = this.#flows.find(client.host, client.port);
    if (known !== undefined && known.upstream !== upstream) known.end('listener-closed');
    const flow = known !== undefined && known.upstream === upstream ? known : this.#open(upstream, client);
    if (flow !== undefined) forwardGuarded(flow, bytes);
  }

  #open(upstream: Upstream | undefined, client: UdpClient): UdpFlow | undefined {
    const refusal = refusalOf(upstream, client) ?? (this.#options.isServed(client) ? 'forged-source' : undefined);
    if (upstream === undefined || refusal !== undefined) {
      this.#refuse(upstream, client, refusal ?? 'no-listener');
      return undefined;
    }
    const admission = this.#options.takeNewFlow(upstream)
      ? this.#options.admit(upstream.service.entry.uid)
      : 'rate-limit';
    if (typeof admission === 'string') {
      this.#refuse(upstream, client, admission);
      return undefined;
    }
    try {
      if (admission.admitClient(upstream.route, client)) return this.#begin(upstream, client, admission);
    } catch (thrown) {
      admission.release();
      throw thrown;
    }
    admission.release();
    this.#refuse(upstream, client, 'client-limit');
    return undefined;
  }

  #begin(upstream: Upstream, client: UdpClient, admission: Admission): UdpFlow | undefined {
    this.#evictForNewFlow(upstream, client);
    const flow = new UdpFlow(client, { upstream, admission, context: this.#context });
    try {
      this.#flows.add(flow);
      this.#options.tenants.add(flow);
      this.#peers?.claim(client);
      return flow;
    } catch (thrown) {
      flow.onThrow(thrown);
      return undefined;
    }
  }

  /**
   * If the client address or the tenant has reached its maximum number of flows, ends the least recently active flow of
   * that client address or tenant.
   */
  #evictForNewFlow(upstream: Upstream, client: UdpClient): void {
    const { tenants } = this.#options;
    if (this.#flows.countOf(client.host) >= tenants.maxFlowsPerClient) {
      this.#flows.leastRecentlyActive(client.host)?.end('evicted');
    }
    const { tenant, uid } = upstream.service.entry;
    tenants.flowToEvict(tenant ?? uid)?.end('evicted');
  }

  #refuse(upstream: Upstream | undefined, client: UdpClient, outcome: Outcome): void {
    countOutcome(upstream?.service.counters ?? this.#options.unroutedCounters(), outcome);
    if (upstream === undefined || !hasAccessLog(upstream.service)) return;
    const refused = { protocol: 'UDP', client, destination: this.#address, outcome, ...NOTHING_RELAYED } as const;
    this.#options.accessLog.refuseConnection(refused, upstream.service);
  }
}

function forwardGuarded(flow: UdpFlow, bytes: Uint8Array): void {
  try {
    flow.forward(bytes);
  } catch (thrown) {
    flow.onThrow(thrown);
  }
}

function refusalOf(upstream: Upstream | undefined, client: UdpClient): Outcome | undefined {
  if (upstream === undefined) return 'no-listener';
  return upstream.service.isSuspended ? 'cut-off' : routeRefusalFor(upstream.route, client);
}
