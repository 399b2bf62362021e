// One UDP listener of a worker: finds the flow of each datagram, or opens one.
import { type Client, type ListenerKey, refusalFor } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import { countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { Member } from '../relay/member.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import type { Shaper } from '../shape/shaper.ts';
import { Flow, type FlowContext, type FlowHome } from './flow.ts';
import { FlowTable } from './flow-table.ts';
import type { ListenerNeighbours, Neighbours } from './neighbours.ts';
import type { TenantFlows } from './tenant-flows.ts';
import type { BindAt, UdpListener, UdpListenerEvents, UdpTransport } from './transport.ts';

export interface FlowListenerOptions {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Member>;
  readonly shaper: Shaper;
  readonly tenants: TenantFlows<Flow>;
  /** Absent: it is alone. */
  readonly neighbours?: Neighbours | undefined;
  /** Whose listener it is now. */
  home(): FlowHome | undefined;
  /** A place under the limits for one more flow of this Service, or why there is none. */
  admit(uid: string): Grant | Outcome;
  /** Counted where nobody can be billed. */
  unrouted(): Float64Array;
  /** Ends many, a few at a time. */
  sever(flows: Iterable<Member>, outcome: Outcome): void;
  onListening(): void;
  onFailed(code: string): void;
  onInternalError(thrown: unknown): void;
}

export class FlowListener implements UdpListenerEvents {
  readonly #options: FlowListenerOptions;
  readonly #flows = new FlowTable<Flow>();
  readonly #listener: UdpListener;
  readonly #context: FlowContext;
  readonly #neighbours: ListenerNeighbours | undefined;

  constructor(at: BindAt & { readonly key: ListenerKey }, options: FlowListenerOptions) {
    const { transport, wheel, shaper, tenants, neighbours } = options;
    this.#options = options;
    this.#neighbours = neighbours?.join(at.key, (bytes, client) => this.#takeForwarded(bytes, client));
    this.#listener = transport.bind(at, this);
    this.#context = {
      transport,
      wheel,
      shaper,
      listener: this.#listener,
      onStir: (flow) => {
        this.#flows.stir(flow);
        tenants.stir(flow);
      },
      onEnded: (flow) => {
        this.#flows.remove(flow);
        tenants.remove(flow);
        this.#neighbours?.release(flow);
      },
      onInternalError: (thrown) => options.onInternalError(thrown),
    };
  }

  /** Its flows end with it: there is no other socket from which their clients would take an answer. */
  close(): void {
    this.#listener.close();
    this.#neighbours?.leave();
    this.#options.sever(this.#flows.all(), 'listener-closed');
  }

  onListening(): void {
    this.#options.onListening();
  }

  onFailed(code: string): void {
    this.#neighbours?.leave();
    this.#options.onFailed(code);
  }

  onMessage(bytes: Uint8Array, address: string, port: number): void {
    const home = this.#options.home();
    const flow = this.#flows.find(address, port);
    if (flow !== undefined && flow.home === home) pass(flow, bytes);
    else this.#onUnknown(flow, bytes, { address, port });
  }

  onThrow(thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.#refuse(undefined, 'internal');
  }

  #onUnknown(former: Flow | undefined, bytes: Uint8Array, client: Client): void {
    if (former === undefined && this.#neighbours?.forward(bytes, client) === true) return;
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
    const home = this.#options.home();
    const known = this.#flows.find(client.address, client.port);
    if (known !== undefined && known.home !== home) known.end('listener-closed');
    const flow = known !== undefined && known.home === home ? known : this.#open(home, client);
    if (flow !== undefined) pass(flow, bytes);
  }

  #open(home: FlowHome | undefined, client: Client): Flow | undefined {
    const refusal = refusalOf(home, client);
    if (home === undefined || refusal !== undefined) {
      this.#refuse(home, refusal ?? 'no-listener');
      return undefined;
    }
    const grant = this.#options.admit(home.group.service.uid);
    if (typeof grant === 'string') {
      this.#refuse(home, grant);
      return undefined;
    }
    try {
      if (grant.capClient(home.route, client)) return this.#begin(home, client, grant);
    } catch (thrown) {
      grant.release();
      throw thrown;
    }
    grant.release();
    this.#refuse(home, 'client-limit');
    return undefined;
  }

  #begin(home: FlowHome, client: Client, grant: Grant): Flow | undefined {
    this.#makeRoom(home, client);
    const flow = new Flow(client, { home, grant, context: this.#context });
    try {
      this.#flows.add(flow);
      this.#options.tenants.add(flow);
      this.#neighbours?.claim(client);
      return flow;
    } catch (thrown) {
      flow.onThrow(thrown);
      return undefined;
    }
  }

  /** Under the caps that always hold: the longest silent flow goes. */
  #makeRoom(home: FlowHome, client: Client): void {
    const { tenants } = this.#options;
    if (this.#flows.countOf(client.address) >= tenants.mostPerClient) {
      this.#flows.longestSilentOf(client.address)?.end('evicted');
    }
    const { tenant, uid } = home.group.service;
    tenants.inTheWay(tenant ?? uid)?.end('evicted');
  }

  #refuse(home: FlowHome | undefined, outcome: Outcome): void {
    countOutcome(home?.group.row ?? this.#options.unrouted(), outcome);
  }
}

function pass(flow: Flow, bytes: Uint8Array): void {
  try {
    flow.forward(bytes);
  } catch (thrown) {
    flow.onThrow(thrown);
  }
}

function refusalOf(home: FlowHome | undefined, client: Client): Outcome | undefined {
  if (home === undefined) return 'no-listener';
  return home.group.isCutOff ? 'cut-off' : refusalFor(home.route, client);
}
