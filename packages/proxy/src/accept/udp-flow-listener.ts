// One UDP listener of a worker: finds the flow of each datagram, or opens one.
import { type Client, type ListenerKey, routeRefusalFor } from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { Shaper } from '../limits/shaper.ts';
import { countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { ListenerPeers, PeerWorkers } from '../relay/peer-workers.ts';
import type { Session } from '../relay/session.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { type FlowContext, type FlowUpstream, UdpFlow } from '../relay/udp-flow.ts';
import type { TenantFlows } from '../relay/udp-flow-table.ts';
import { FlowTable } from '../relay/udp-flow-table.ts';
import type {
  UdpBindOptions,
  UdpListenSocket,
  UdpListenSocketEvents,
  UdpTransport,
} from '../transport/udp-transport.ts';

export interface UdpFlowListenerOptions {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  readonly tenants: TenantFlows<UdpFlow>;
  /** Absent: it is alone. */
  readonly peerWorkers?: PeerWorkers | undefined;
  /** Whose listener it is now. */
  upstream(): FlowUpstream | undefined;
  /** A place under the limits for one more flow of this Service, or why there is none. */
  admit(uid: string): Admission | Outcome;
  /** Counted where nobody can be billed. */
  unroutedCounters(): Float64Array;
  /** Ends many, a few at a time. */
  terminate(flows: Iterable<Session>, outcome: Outcome): void;
  onListening(): void;
  onFailed(code: string): void;
  onInternalError(thrown: unknown): void;
}

export class UdpFlowListener implements UdpListenSocketEvents {
  readonly #options: UdpFlowListenerOptions;
  readonly #flows = new FlowTable<UdpFlow>();
  readonly #listener: UdpListenSocket;
  readonly #context: FlowContext;
  readonly #peers: ListenerPeers | undefined;

  constructor(at: UdpBindOptions & { readonly key: ListenerKey }, options: UdpFlowListenerOptions) {
    const { transport, wheel, shaper, tenants, peerWorkers } = options;
    this.#options = options;
    this.#peers = peerWorkers?.join(at.key, (bytes, client) => this.#takeForwarded(bytes, client));
    this.#listener = transport.bind(at, this);
    this.#context = {
      transport,
      wheel,
      shaper,
      listener: this.#listener,
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

  /** Its flows end with it: there is no other socket from which their clients would take an answer. */
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

  onMessage(bytes: Uint8Array, address: string, port: number): void {
    const home = this.#options.upstream();
    const flow = this.#flows.find(address, port);
    if (flow !== undefined && flow.upstream === home) forwardGuarded(flow, bytes);
    else this.#onUnknown(flow, bytes, { address, port });
  }

  onThrow(thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.#refuse(undefined, 'internal');
  }

  #onUnknown(former: UdpFlow | undefined, bytes: Uint8Array, client: Client): void {
    if (former === undefined && this.#peers?.forward(bytes, client) === true) return;
    this.#forward(bytes, client);
  }

  /** It comes over a channel, which guards nobody. */
  #takeForwarded(bytes: Uint8Array, client: Client): void {
    try {
      this.#forward(bytes, client);
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  /** To the flow of this worker; opens it when there is none, or only one of the listener's former Service. */
  #forward(bytes: Uint8Array, client: Client): void {
    const home = this.#options.upstream();
    const known = this.#flows.find(client.address, client.port);
    if (known !== undefined && known.upstream !== home) known.end('listener-closed');
    const flow = known !== undefined && known.upstream === home ? known : this.#open(home, client);
    if (flow !== undefined) forwardGuarded(flow, bytes);
  }

  #open(home: FlowUpstream | undefined, client: Client): UdpFlow | undefined {
    const refusal = refusalOf(home, client);
    if (home === undefined || refusal !== undefined) {
      this.#refuse(home, refusal ?? 'no-listener');
      return undefined;
    }
    const grant = this.#options.admit(home.service.entry.uid);
    if (typeof grant === 'string') {
      this.#refuse(home, grant);
      return undefined;
    }
    try {
      if (grant.admitClient(home.route, client)) return this.#begin(home, client, grant);
    } catch (thrown) {
      grant.release();
      throw thrown;
    }
    grant.release();
    this.#refuse(home, 'client-limit');
    return undefined;
  }

  #begin(home: FlowUpstream, client: Client, grant: Admission): UdpFlow | undefined {
    this.#evictForNewFlow(home, client);
    const flow = new UdpFlow(client, { home, grant, context: this.#context });
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

  /** Under the caps that always hold: the longest silent flow goes. */
  #evictForNewFlow(home: FlowUpstream, client: Client): void {
    const { tenants } = this.#options;
    if (this.#flows.countOf(client.address) >= tenants.maxFlowsPerClient) {
      this.#flows.leastRecentlyActive(client.address)?.end('evicted');
    }
    const { tenant, uid } = home.service.entry;
    tenants.flowToEvict(tenant ?? uid)?.end('evicted');
  }

  #refuse(home: FlowUpstream | undefined, outcome: Outcome): void {
    countOutcome(home?.service.counters ?? this.#options.unroutedCounters(), outcome);
  }
}

function forwardGuarded(flow: UdpFlow, bytes: Uint8Array): void {
  try {
    flow.forward(bytes);
  } catch (thrown) {
    flow.onThrow(thrown);
  }
}

function refusalOf(home: FlowUpstream | undefined, client: Client): Outcome | undefined {
  if (home === undefined) return 'no-listener';
  return home.service.isSuspended ? 'cut-off' : routeRefusalFor(home.route, client);
}
