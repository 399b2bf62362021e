// One UDP listener of a worker: finds the flow of each datagram, or opens one.
import { type Client, refusalFor } from '@weir/model';
import { outcomeColumn } from '../counters/columns.ts';
import type { Member } from '../relay/member.ts';
import type { Outcome } from '../relay/outcome.ts';
import type { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { Flow, type FlowContext, type FlowHome } from './flow.ts';
import { FlowTable } from './flow-table.ts';
import { nextToGo } from './next-to-go.ts';
import type { TenantFlows } from './tenant-flows.ts';
import type { BindAt, UdpListener, UdpListenerEvents, UdpTransport } from './transport.ts';

/** What one client address may have of one listener in one worker; its longest silent flow makes room for a new one. */
export const FLOWS_PER_CLIENT = 1_024;

export interface FlowListenerOptions {
  readonly transport: UdpTransport;
  readonly wheel: TimeoutWheel<Member>;
  readonly tenants: TenantFlows<Flow>;
  readonly flowsPerClient?: number;
  /** Whose listener it is now. */
  home(): FlowHome | undefined;
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

  constructor(at: BindAt, options: FlowListenerOptions) {
    const { transport, wheel, tenants } = options;
    this.#options = options;
    this.#listener = transport.bind(at, this);
    this.#context = {
      transport,
      wheel,
      listener: this.#listener,
      onEnded: (flow) => {
        this.#flows.remove(flow);
        tenants.remove(flow);
      },
      onInternalError: (thrown) => options.onInternalError(thrown),
    };
  }

  /** Its flows end with it: there is no other socket from which their clients would take an answer. */
  close(): void {
    this.#listener.close();
    this.#options.sever(this.#flows.all(), 'listener-closed');
  }

  onListening(): void {
    this.#options.onListening();
  }

  onFailed(code: string): void {
    this.#options.onFailed(code);
  }

  onMessage(bytes: Uint8Array, address: string, port: number): void {
    const flow = this.#flowFor(address, port);
    if (flow === undefined) return;
    try {
      flow.forward(bytes);
    } catch (thrown) {
      flow.onThrow(thrown);
    }
  }

  onThrow(thrown: unknown): void {
    this.#options.onInternalError(thrown);
    this.#refuse(undefined, 'internal');
  }

  #flowFor(address: string, port: number): Flow | undefined {
    const home = this.#options.home();
    const flow = this.#flows.find(address, port);
    if (flow !== undefined && flow.home === home) return flow;
    flow?.end('listener-closed');
    return this.#open(home, { address, port });
  }

  #open(home: FlowHome | undefined, client: Client): Flow | undefined {
    const refusal = refusalOf(home, client);
    if (home === undefined || refusal !== undefined) {
      this.#refuse(home, refusal ?? 'no-listener');
      return undefined;
    }
    const { tenants, flowsPerClient = FLOWS_PER_CLIENT } = this.#options;
    const ofClient = this.#flows.of(client.address);
    if (ofClient !== undefined && ofClient.size >= flowsPerClient) nextToGo(ofClient)?.end('evicted');
    const { tenant, uid } = home.group.service;
    tenants.inTheWay(tenant ?? uid)?.end('evicted');
    const flow = new Flow(client, home, this.#context);
    this.#flows.add(flow);
    tenants.add(flow);
    return flow;
  }

  #refuse(home: FlowHome | undefined, outcome: Outcome): void {
    const row = home?.group.row ?? this.#options.unrouted();
    const column = outcomeColumn(outcome);
    row[column] = (row[column] as number) + 1;
  }
}

function refusalOf(home: FlowHome | undefined, client: Client): Outcome | undefined {
  if (home === undefined) return 'no-listener';
  return home.group.isCutOff ? 'cut-off' : refusalFor(home.route, client);
}
