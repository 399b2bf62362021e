// A worker without its thread: takes orders, listens, and owns each connection for its whole life.
import {
  type AffinityMemory,
  type BalancerTools,
  type Cidr,
  createMatcher,
  EMPTY_TABLE,
  expectsClientHello,
  isWithin,
  type ListenerKey,
  type Matcher,
  parseCidr,
  patchMatcher,
  refusalFor,
} from '@weir/model';
import type { Grant } from '../admit/admit.ts';
import type { LimitSeat } from '../admit/limit-memory.ts';
import { WorkerLimits } from '../admit/worker-limits.ts';
import { outcomeColumn } from '../counters/columns.ts';
import { type Arrived, arrivedAt } from '../relay/arrived.ts';
import { Connection } from '../relay/connection.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import type { Member } from '../relay/member.ts';
import type { Outcome } from '../relay/outcome.ts';
import { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { Shaper } from '../shape/shaper.ts';
import { descriptorCeiling } from '../tcp/descriptor-ceiling.ts';
import type { TcpStream, Transport } from '../tcp/transport.ts';
import { dgramTransport } from '../udp/dgram-transport.ts';
import type { Flow } from '../udp/flow.ts';
import { FlowListener } from '../udp/flow-listener.ts';
import type { Neighbours } from '../udp/neighbours.ts';
import { flowsPerTenant, TenantFlows } from '../udp/tenant-flows.ts';
import type { UdpTransport } from '../udp/transport.ts';
import { Arrival, type ArrivalNeeds } from './arrival.ts';
import { ConnectNews } from './connect-news.ts';
import { Departures } from './departures.ts';
import type { DescriptorRoom } from './descriptor-room.ts';
import type { Answer, Door, Order } from './messages.ts';
import { monotonicMs } from './monotonic.ts';
import { RouteHome } from './route-home.ts';
import { ServiceGroups } from './service-groups.ts';
import { Severing } from './severing.ts';

const WHEEL_SLOTS = 128;

export interface RelayWorkerOptions {
  readonly node: string;
  readonly transport: Transport;
  /** Absent: the public one. */
  readonly udpTransport?: UdpTransport;
  readonly slabs: readonly SharedArrayBuffer[];
  /** CIDRs from which every connection begins with a PROXY header. */
  readonly trustProxyProtocol?: readonly string[] | undefined;
  /** Shared by the workers of a proxy; without it ClientIP affinity forgets. */
  readonly memory?: AffinityMemory;
  /** Shared by the workers of a proxy; without it nothing is limited. */
  readonly limits?: LimitSeat;
  readonly descriptors?: DescriptorRoom;
  /** The other workers of the proxy, which may have UDP flows that the kernel gives to this one. */
  readonly neighbours?: Neighbours;
  answer(answer: Answer): void;
  /** What ended no more than one connection. */
  report(what: 'accept' | 'internal', thrown: unknown): void;
  /** A connect failed; `code` as in errno. */
  onConnectError?(code: string | undefined): void;
}

export class RelayWorker {
  readonly #options: RelayWorkerOptions;
  readonly #matcher: Matcher;
  readonly #context: RelayContext;
  readonly #homes = new Map<ListenerKey, RouteHome>();
  readonly #listeners = new Map<number, { close(): void }>();
  readonly #wheel = new TimeoutWheel<Member>(WHEEL_SLOTS, (member) => member.onExpired());
  readonly #tenantFlows = new TenantFlows<Flow>(flowsPerTenant(descriptorCeiling()));
  readonly #severing = new Severing();
  readonly #departures = new Departures(this.#severing);
  readonly #news: ConnectNews;
  readonly #groups: ServiceGroups;
  readonly #limits: WorkerLimits;
  readonly #trusted: readonly Cidr[];
  readonly #tools: BalancerTools;

  constructor(options: RelayWorkerOptions) {
    this.#options = options;
    this.#trusted = (options.trustProxyProtocol ?? []).flatMap((text) => parseCidr(text) ?? []);
    this.#groups = new ServiceGroups(options.slabs, this.#severing);
    this.#limits = new WorkerLimits(options.limits);
    this.#news = new ConnectNews((reports) => options.answer({ kind: 'connects', reports }));
    this.#matcher = createMatcher(EMPTY_TABLE, options.node);
    this.#tools = { random: Math.random, now: monotonicMs, memory: options.memory };
    this.#context = {
      transport: options.transport,
      wheel: this.#wheel,
      shaper: new Shaper(),
      onInternalError: (thrown) => options.report('internal', thrown),
      onConnectError: (code) => options.onConnectError?.(code),
    };
  }

  /** Once a second. */
  tick(): void {
    this.#wheel.tick();
    this.#departures.tick(this.#wheel.now);
    this.#groups.sweep();
  }

  follow(order: Order): void {
    switch (order.kind) {
      case 'grow':
        this.#groups.grow(order.slab);
        return;
      case 'table':
        for (const [uid, slot] of order.slots) this.#groups.assign(uid, slot);
        this.#limits.assign(order.limits ?? []);
        for (const key of patchMatcher(this.#matcher, order.changes)) this.#refresh(key);
        return;
      case 'maglev':
        for (const key of order.listeners) this.#homes.get(key)?.setMaglev(order.slots && new Uint16Array(order.slots));
        return;
      case 'health':
        for (const key of order.listeners) this.#homes.get(key)?.setUnused(order.unused);
        return;
      case 'cutoffs':
        this.#groups.cutOff(order.cutoffs, order.now);
        return;
      case 'listen':
        this.#listen(order.door);
        return;
      case 'unlisten':
        this.#listeners.get(order.door.id)?.close();
        this.#listeners.delete(order.door.id);
        return;
      case 'sever':
        for (const group of this.#groups.all()) this.#severing.sever(group.members, order.outcome);
        return;
      case 'mark':
        this.#options.answer({ kind: 'done', sequence: order.sequence });
    }
  }

  #refresh(key: ListenerKey): void {
    const route = this.#matcher.routes.get(key);
    const home = this.#homes.get(key);
    if (route !== undefined && home?.group.service.uid === route.service.uid) {
      home.update(route, this.#wheel.now);
      this.#groups.rename(home.group, route.service);
      return;
    }
    if (route === undefined) this.#homes.delete(key);
    else {
      const group = this.#groups.join(route.service);
      this.#homes.set(
        key,
        new RouteHome(route, { group, departures: this.#departures, tools: this.#tools, news: this.#news }),
      );
    }
    if (home === undefined) return;
    home.leave(this.#wheel.now);
    this.#groups.leave(home.group);
  }

  #listen(door: Door): void {
    const { transport, udpTransport = dgramTransport, answer, report } = this.#options;
    const at = { address: door.address, port: door.port, reusePort: true };
    const opening = {
      onListening: () => answer({ kind: 'listening', door: door.id }),
      onFailed: (code: string) => {
        this.#listeners.delete(door.id);
        answer({ kind: 'failed', door: door.id, code });
      },
    };
    const listener =
      door.protocol === 'TCP'
        ? transport.listen(at, {
            ...opening,
            onConnection: (stream) => this.#arrive(door, stream),
            onAcceptError: (code) => report('accept', code),
          })
        : new FlowListener(
            { ...at, key: door.key },
            {
              ...opening,
              transport: udpTransport,
              wheel: this.#wheel,
              shaper: this.#context.shaper,
              tenants: this.#tenantFlows,
              home: () => this.#homes.get(door.key),
              unrouted: () => this.#groups.rowFor(undefined),
              neighbours: this.#options.neighbours,
              admit: (uid) => this.#limits.admit(uid),
              sever: (flows, outcome) => this.#severing.sever(flows, outcome),
              onInternalError: this.#context.onInternalError,
            },
          );
    this.#listeners.set(door.id, listener);
  }

  #arrive(door: Door, stream: TcpStream): void {
    try {
      const home = this.#homes.get(door.key);
      if (home === undefined) this.#refuse(stream, undefined, 'no-listener');
      else if (home.group.isCutOff) this.#refuse(stream, home, 'cut-off');
      else if (this.#options.descriptors?.admits() === false) this.#refuse(stream, home, 'no-descriptors');
      else {
        const needs = this.#needsOf(stream, home);
        if (needs.proxyHeader || needs.clientHello) this.#receive(door, stream, { home, needs });
        else this.#letIn(stream, home, arrivedAt(door, stream));
      }
    } catch (thrown) {
      this.#options.report('internal', thrown);
      this.#refuse(stream, undefined, 'internal');
    }
  }

  #needsOf(stream: TcpStream, home: RouteHome): ArrivalNeeds {
    return {
      proxyHeader: this.#trusted.length > 0 && isWithin(stream.remoteAddress, this.#trusted),
      clientHello: expectsClientHello(home.route),
    };
  }

  #receive(door: Door, stream: TcpStream, { home, needs }: { home: RouteHome; needs: ArrivalNeeds }): void {
    const grant = this.#limits.admit(home.group.service.uid);
    if (typeof grant === 'string') {
      this.#refuse(stream, home, grant);
      return;
    }
    new Arrival(stream, {
      destination: door,
      needs,
      group: home.group,
      grant,
      wheel: this.#wheel,
      isServed: (serverName) => home.isServed(serverName),
      // The listener may be another Service's by now, or this one cut off.
      letIn: (taken, arrived) => {
        const now = this.#homes.get(door.key);
        if (now?.group !== home.group) this.#relay(taken, home, { arrived, grant, refusal: 'no-listener' });
        else if (home.group.isCutOff) this.#relay(taken, home, { arrived, grant, refusal: 'cut-off' });
        else this.#relay(taken, now, { arrived, grant, refusal: refusalFor(now.route, arrived.client) });
      },
      onInternalError: this.#context.onInternalError,
    }).start();
  }

  #letIn(stream: TcpStream, home: RouteHome, arrived: Arrived): void {
    const refusal = refusalFor(home.route, arrived.client);
    const grant = refusal ?? this.#limits.admit(home.group.service.uid);
    if (typeof grant === 'string') this.#refuse(stream, home, grant);
    else this.#relay(stream, home, { arrived, grant, refusal: undefined });
  }

  #relay(stream: TcpStream, home: RouteHome, { arrived, grant, refusal }: Placed): void {
    const isTooMany = refusal === undefined && !grant.capClient(home.route, arrived.client);
    const outcome = isTooMany ? 'client-limit' : refusal;
    if (outcome !== undefined) {
      grant.release();
      this.#refuse(stream, home, outcome);
      return;
    }
    try {
      new Connection(stream, arrived, { context: this.#context, home, row: home.group.row, grant }).start();
    } catch (thrown) {
      grant.release();
      throw thrown;
    }
  }

  #refuse(stream: TcpStream, home: RouteHome | undefined, outcome: Outcome): void {
    const row = home?.group.row ?? this.#groups.rowFor(undefined);
    const column = outcomeColumn(outcome);
    row[column] = (row[column] as number) + 1;
    stream.reset();
  }
}

/** It has its place, and is read; only now is it known who it is. */
interface Placed {
  readonly arrived: Arrived;
  readonly grant: Grant;
  readonly refusal: Outcome | undefined;
}
