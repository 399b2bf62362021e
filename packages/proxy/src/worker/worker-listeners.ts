// What listens in a worker: a door of either protocol is opened with what its clients need, and closed.
import { compileNetworks, type Matcher, type Networks } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { WorkerLimits } from '../admit/worker-limits.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import { descriptorCeiling } from '../tcp/descriptor-ceiling.ts';
import type { ListenAt } from '../tcp/transport.ts';
import { SecureContexts } from '../tls/secure-contexts.ts';
import { dgramTransport } from '../udp/dgram-transport.ts';
import type { Flow } from '../udp/flow.ts';
import { FlowListener } from '../udp/flow-listener.ts';
import type { Neighbours } from '../udp/neighbours.ts';
import { flowsPerTenant, TenantFlows } from '../udp/tenant-flows.ts';
import type { UdpTransport } from '../udp/transport.ts';
import type { DescriptorRoom } from './descriptor-room.ts';
import type { Answer, Door } from './messages.ts';
import type { RouteHomes } from './route-homes.ts';
import type { ServiceGroups } from './service-groups.ts';
import type { Severing } from './severing.ts';
import type { Strangers } from './strangers.ts';
import { TcpDoor, type TcpDoorOptions } from './tcp-door.ts';

export interface WorkerListenersOptions {
  /** Absent: the public one. */
  readonly udpTransport?: UdpTransport;
  /** CIDRs from which every connection begins with a PROXY header. */
  readonly trustProxyProtocol?: readonly string[] | undefined;
  readonly descriptors?: DescriptorRoom;
  /** Of the fleet's secret; without it no TLS can end here. */
  readonly sealer?: Sealer | undefined;
  /** Milliseconds since the epoch, by which tickets of TLS change and certificates of clients end; absent: the clock's. */
  readonly wallClock?: () => number;
  /** The other workers of the proxy, which may have UDP flows that the kernel gives to this one. */
  readonly neighbours?: Neighbours;
  answer(answer: Answer): void;
  /** What ended no more than one connection. */
  report(what: 'accept' | 'internal', thrown: unknown): void;
}

/** Of the worker, which lives on when a listener is closed. */
export interface WorkerRooms {
  readonly matcher: Matcher;
  readonly context: RelayContext;
  readonly homes: RouteHomes;
  readonly groups: ServiceGroups;
  readonly strangers: Strangers;
  readonly limits: WorkerLimits;
  readonly severing: Severing;
}

export class WorkerListeners {
  readonly #options: WorkerListenersOptions;
  readonly #rooms: WorkerRooms;
  readonly #open = new Map<number, { close(): void }>();
  readonly #tenantFlows = new TenantFlows<Flow>(flowsPerTenant(descriptorCeiling()));
  readonly #certificates: SecureContexts;
  readonly #trusted: Networks;

  constructor(options: WorkerListenersOptions, rooms: WorkerRooms) {
    this.#options = options;
    this.#rooms = rooms;
    this.#trusted = compileNetworks(options.trustProxyProtocol ?? []);
    this.#certificates = new SecureContexts({
      sealer: options.sealer,
      now: options.wallClock ?? Date.now,
      onUnusable: (news) => options.answer({ kind: 'certificate', news }),
    });
  }

  open(door: Door): void {
    const listener = door.protocol === 'TCP' ? this.#tcpDoor(door) : this.#flowListener(door);
    this.#open.set(door.id, listener);
  }

  close(id: number): void {
    this.#open.get(id)?.close();
    this.#open.delete(id);
  }

  #tcpDoor(door: Door): TcpDoor {
    const { descriptors, report } = this.#options;
    const { matcher, homes, strangers, context } = this.#rooms;
    const { key } = door;
    return new TcpDoor(listenAt(door), {
      ...this.#listenerNeeds(door),
      isShared: () => matcher.listeners.get(key)?.isShared === true,
      homeOf: (serverName) => homes.find(key, serverName),
      strangers,
      certificates: this.#certificates,
      context,
      descriptors,
      trusted: this.#trusted,
      onAcceptError: (code) => report('accept', code),
    });
  }

  #flowListener(door: Door): FlowListener {
    const { neighbours, udpTransport = dgramTransport } = this.#options;
    const { context, severing } = this.#rooms;
    return new FlowListener(
      { ...listenAt(door), key: door.key },
      {
        ...this.#listenerNeeds(door),
        transport: udpTransport,
        wheel: context.wheel,
        shaper: context.shaper,
        tenants: this.#tenantFlows,
        neighbours,
        sever: (flows, outcome) => severing.sever(flows, outcome),
        onInternalError: context.onInternalError,
      },
    );
  }

  /** What listeners of both kinds need. */
  #listenerNeeds({ id, key }: Door): ListenerNeeds {
    const { answer } = this.#options;
    const { homes, limits, groups } = this.#rooms;
    return {
      home: () => homes.get(key),
      admit: (uid) => limits.admit(uid),
      unrouted: () => groups.rowFor(undefined),
      onListening: () => answer({ kind: 'listening', door: id }),
      onFailed: (code) => {
        this.#open.delete(id);
        answer({ kind: 'failed', door: id, code });
      },
    };
  }
}

type ListenerNeeds = Pick<TcpDoorOptions, 'home' | 'admit' | 'unrouted' | 'onListening' | 'onFailed'>;

function listenAt({ address, port }: Door): ListenAt {
  return { address, port, reusePort: true };
}
