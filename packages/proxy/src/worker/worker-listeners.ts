// What listens in a worker: a door of either protocol is opened with what its clients need, and closed.
import { compileNetworks, type Matcher, type NetworkSet } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { PendingConnections } from '../accept/pending-connection.ts';
import { TcpListener, type TcpListenerOptions } from '../accept/tcp-listener.ts';
import { UdpFlowListener } from '../accept/udp-flow-listener.ts';
import type { AdmissionController } from '../limits/admission.ts';
import type { DescriptorLimiter } from '../limits/descriptor-limit.ts';
import { descriptorCeiling } from '../limits/descriptor-limit.ts';
import { TlsContexts } from '../protocol/tls-contexts.ts';
import type { PeerWorkers } from '../relay/peer-workers.ts';
import type { ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import type { RelayContext } from '../relay/session.ts';
import type { SessionTerminator } from '../relay/session-terminator.ts';
import type { UdpFlow } from '../relay/udp-flow.ts';
import { flowsPerTenant, TenantFlows } from '../relay/udp-flow-table.ts';
import type { TcpListenOptions } from '../transport/tcp-transport.ts';
import { dgramTransport } from '../transport/udp/dgram-transport.ts';
import type { UdpTransport } from '../transport/udp-transport.ts';
import type { UpstreamRegistry } from '../upstream/upstream-registry.ts';
import type { ListenerConfig, WorkerMessage } from './messages.ts';

export interface WorkerListenersOptions {
  /** Absent: the public one. */
  readonly udpTransport?: UdpTransport;
  /** CIDRs from which every connection begins with a PROXY header. */
  readonly trustedProxies?: readonly string[] | undefined;
  readonly descriptorLimiter?: DescriptorLimiter;
  /** Of the fleet's secret; without it no TLS can end here. */
  readonly sealer?: Sealer | undefined;
  /** Milliseconds since the epoch, by which tickets of TLS change and certificates of clients end; absent: the clock's. */
  readonly wallClock?: () => number;
  /** The other workers of the proxy, which may have UDP flows that the kernel gives to this one. */
  readonly peerWorkers?: PeerWorkers;
  send(answer: WorkerMessage): void;
  /** What ended no more than one connection. */
  reportError(what: 'accept' | 'internal', thrown: unknown): void;
}

/** Of the worker, which lives on when a listener is closed. */
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
  readonly #openById = new Map<number, { close(): void }>();
  readonly #tenantFlows = new TenantFlows<UdpFlow>(flowsPerTenant(descriptorCeiling()));
  readonly #tlsContexts: TlsContexts;
  readonly #trustedProxies: NetworkSet;

  constructor(options: WorkerListenersOptions, rooms: WorkerState) {
    this.#options = options;
    this.#state = rooms;
    this.#trustedProxies = compileNetworks(options.trustedProxies ?? []);
    this.#tlsContexts = new TlsContexts({
      sealer: options.sealer,
      now: options.wallClock ?? Date.now,
      onCertificateFault: (news) => options.send({ kind: 'certificate-fault', report: news }),
    });
  }

  open(door: ListenerConfig): void {
    const listener = door.protocol === 'TCP' ? this.#createTcpListener(door) : this.#createFlowListener(door);
    this.#openById.set(door.id, listener);
  }

  close(id: number): void {
    this.#openById.get(id)?.close();
    this.#openById.delete(id);
  }

  #createTcpListener(door: ListenerConfig): TcpListener {
    const { descriptorLimiter, reportError } = this.#options;
    const { matcher, upstreams, pendingConnections, context } = this.#state;
    const { key } = door;
    return new TcpListener(listenAt(door), {
      ...this.#sharedListenerOptions(door),
      isShared: () => matcher.listeners.get(key)?.isShared === true,
      upstreamFor: (serverName) => upstreams.findByServerName(key, serverName),
      pendingConnections,
      certificates: this.#tlsContexts,
      context,
      descriptorLimiter,
      trustedProxies: this.#trustedProxies,
      onAcceptError: (code) => reportError('accept', code),
    });
  }

  #createFlowListener(door: ListenerConfig): UdpFlowListener {
    const { peerWorkers, udpTransport = dgramTransport } = this.#options;
    const { context, terminator } = this.#state;
    return new UdpFlowListener(
      { ...listenAt(door), key: door.key },
      {
        ...this.#sharedListenerOptions(door),
        transport: udpTransport,
        wheel: context.wheel,
        shaper: context.shaper,
        tenants: this.#tenantFlows,
        peerWorkers,
        terminate: (flows, outcome) => terminator.terminate(flows, outcome),
        onInternalError: context.onInternalError,
      },
    );
  }

  /** What listeners of both kinds need. */
  #sharedListenerOptions({ id, key }: ListenerConfig): SharedListenerOptions {
    const { send } = this.#options;
    const { upstreams, admission, services } = this.#state;
    return {
      upstream: () => upstreams.get(key),
      admit: (uid) => admission.admit(uid),
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

function listenAt({ address, port }: ListenerConfig): TcpListenOptions {
  return { address, port, reusePort: true };
}
