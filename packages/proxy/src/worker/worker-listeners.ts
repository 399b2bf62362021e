// Opens and closes the TCP and UDP listeners of a worker.
import { compileNetworks, listenerKey, type Matcher, type NetworkSet } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { PendingConnections } from '../accept/pending-connections.ts';
import { TcpListener, type TcpListenerOptions } from '../accept/tcp-listener.ts';
import { UdpFlowListener } from '../accept/udp-flow-listener.ts';
import { RequestRouter } from '../http/request-router.ts';
import type { AdmissionController } from '../limits/admission.ts';
import type { DescriptorLimiter } from '../limits/descriptor-limit.ts';
import { descriptorCeiling } from '../limits/descriptor-limit.ts';
import { NewFlowBudget } from '../limits/new-flow-budget.ts';
import { TlsContexts } from '../protocol/tls-contexts.ts';
import type { PeerWorkers } from '../relay/peer-workers.ts';
import type { ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import type { RelayContext } from '../relay/session.ts';
import type { SessionTerminator } from '../relay/session-terminator.ts';
import type { UdpFlow } from '../relay/udp-flow.ts';
import { flowsPerTenant, TenantFlows } from '../relay/udp-flow-table.ts';
import type { TcpListenOptions } from '../transport/tcp-transport.ts';
import { nodeTlsServer } from '../transport/tls/node-tls-stream.ts';
import { dgramTransport } from '../transport/udp/dgram-transport.ts';
import type { UdpTransport } from '../transport/udp-transport.ts';
import type { UpstreamRegistry } from '../upstream/upstream-registry.ts';
import type { ListenerConfig, WorkerMessage } from './messages.ts';
import { monotonicMs } from './time-sliced-queue.ts';

export interface WorkerListenersOptions {
  /** The UDP transport; by default the transport that uses Node's public `dgram` module. */
  readonly udpTransport?: UdpTransport;
  /**
   * CIDRs of the load balancers in front of the proxies. A connection from these networks must begin with a PROXY
   * header.
   */
  readonly trustedProxies?: readonly string[] | undefined;
  readonly descriptorLimiter?: DescriptorLimiter;
  /** Decrypts private keys with the fleet secret. Without it, this worker cannot terminate TLS. */
  readonly sealer?: Sealer | undefined;
  /** Returns milliseconds since the epoch, for TLS ticket keys and the expiry of client certificates; by default `Date.now`. */
  readonly wallClock?: () => number;
  /** Returns a number in [0, 1), which chooses a backend of an HTTP route; by default `Math.random`. */
  readonly random?: () => number;
  /** The peer workers. The kernel may deliver datagrams of their UDP flows to this worker. */
  readonly peerWorkers?: PeerWorkers;
  send(message: WorkerMessage): void;
  /** Called with the number of datagrams that the kernel dropped because a UDP listener's receive buffer was full. */
  onDatagramsDropped?(count: number): void;
  /** Called for an error that affects only one connection. */
  reportError(origin: 'accept' | 'internal', thrown: unknown): void;
}

/** The parts of the worker that all its listeners share. */
export interface WorkerState {
  readonly matcher: Matcher;
  readonly context: RelayContext;
  readonly upstreams: UpstreamRegistry;
  readonly services: ServiceSessionsRegistry;
  readonly pendingConnections: PendingConnections;
  readonly admission: AdmissionController;
  readonly terminator: SessionTerminator;
}

export class WorkerListeners {
  readonly #options: WorkerListenersOptions;
  readonly #state: WorkerState;
  readonly #openById = new Map<number, TcpListener | UdpFlowListener>();
  readonly #tenantFlows = new TenantFlows<UdpFlow>(flowsPerTenant(descriptorCeiling()));
  readonly #newFlows = new NewFlowBudget({ now: monotonicMs });
  readonly #tlsContexts: TlsContexts;
  readonly #trustedProxies: NetworkSet;

  constructor(options: WorkerListenersOptions, state: WorkerState) {
    this.#options = options;
    this.#state = state;
    this.#trustedProxies = compileNetworks(options.trustedProxies ?? []);
    this.#tlsContexts = new TlsContexts({
      server: state.context.transport.tlsServer ?? nodeTlsServer,
      sealer: options.sealer,
      now: options.wallClock ?? Date.now,
      onCertificateFault: (report) => options.send({ kind: 'certificate-fault', report }),
    });
  }

  open(config: ListenerConfig): void {
    const listener = config.protocol === 'TCP' ? this.#createTcpListener(config) : this.#createFlowListener(config);
    this.#openById.set(config.id, listener);
  }

  close(id: number): void {
    const listener = this.#openById.get(id);
    if (listener instanceof UdpFlowListener) this.#countDropped(listener);
    listener?.close();
    this.#openById.delete(id);
  }

  /** To be called once a second. */
  tick(): void {
    for (const listener of this.#openById.values())
      if (listener instanceof UdpFlowListener) this.#countDropped(listener);
    this.#newFlows.tick();
  }

  #countDropped(listener: UdpFlowListener): void {
    const count = listener.takeDropped();
    if (count > 0) this.#options.onDatagramsDropped?.(count);
  }

  #createTcpListener(config: ListenerConfig): TcpListener {
    const { descriptorLimiter, random = Math.random, reportError } = this.#options;
    const { matcher, upstreams, pendingConnections, context } = this.#state;
    const { key } = config;
    return new TcpListener(listenOptionsOf(config), {
      ...this.#sharedListenerOptions(config),
      isShared: () => matcher.listeners.get(key)?.isShared === true,
      upstreamsFor: (serverName) => upstreams.allByServerName(key, serverName),
      pendingConnections,
      certificates: this.#tlsContexts,
      router: new RequestRouter({ listener: key, matcher, upstreams, random }),
      context,
      descriptorLimiter,
      trustedProxies: this.#trustedProxies,
      onAcceptError: (code) => reportError('accept', code),
    });
  }

  #createFlowListener(config: ListenerConfig): UdpFlowListener {
    const { peerWorkers, udpTransport = dgramTransport } = this.#options;
    const { context, terminator, upstreams, admission } = this.#state;
    return new UdpFlowListener(
      { ...listenOptionsOf(config), key: config.key },
      {
        ...this.#sharedListenerOptions(config),
        transport: udpTransport,
        wheel: context.wheel,
        shaper: context.shaper,
        tenants: this.#tenantFlows,
        accessLog: context.accessLog,
        topClients: context.topClients,
        peerWorkers,
        // The key of a UDP listener is also the key of its route, because Services never share a UDP listener.
        isServed: ({ address, port }) => upstreams.get(listenerKey({ protocol: 'UDP', address, port })) !== undefined,
        takeNewFlow: ({ service: { entry } }) =>
          this.#newFlows.tryTake(entry.tenant ?? entry.uid, admission.newConnectionsPerSecond(entry.uid)),
        terminate: (flows, outcome) => terminator.terminate(flows, outcome),
        onInternalError: context.onInternalError,
      },
    );
  }

  #sharedListenerOptions({ id, key }: ListenerConfig): SharedListenerOptions {
    const { send } = this.#options;
    const { upstreams, admission, services } = this.#state;
    return {
      upstream: () => upstreams.get(key),
      admit: (uid, open) => admission.admit(uid, open),
      unroutedCounters: () => services.countersFor(undefined),
      onListening: () => send({ kind: 'listening', listenerId: id }),
      onFailed: (code) => {
        this.#openById.delete(id);
        send({ kind: 'failed', listenerId: id, code });
      },
    };
  }
}

type SharedListenerOptions = Pick<
  TcpListenerOptions,
  'upstream' | 'admit' | 'unroutedCounters' | 'onListening' | 'onFailed'
>;

function listenOptionsOf({ address, port }: ListenerConfig): TcpListenOptions {
  return { address, port, reusePort: true };
}
