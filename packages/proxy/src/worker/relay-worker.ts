// A worker without its thread: follows orders, and owns what its listeners let in for its whole life.
import {
  type AffinityMemory,
  type BalancerTools,
  createMatcher,
  EMPTY_TABLE,
  type Matcher,
  patchMatcher,
  type RouteKey,
} from '@weir/model/data-plane';
import type { LimitSeat } from '../admit/limit-memory.ts';
import { WorkerLimits } from '../admit/worker-limits.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import type { Member } from '../relay/member.ts';
import { TimeoutWheel } from '../relay/timeout-wheel.ts';
import { Shaper } from '../shape/shaper.ts';
import type { Transport } from '../tcp/transport.ts';
import { ConnectNews } from './connect-news.ts';
import { Departures } from './departures.ts';
import { Expiring } from './expiring.ts';
import type { Order, SentOrder, TableOrder } from './messages.ts';
import { monotonicMs } from './monotonic.ts';
import { OrderRunner } from './order-runner.ts';
import { RouteHomes } from './route-homes.ts';
import { ServiceGroups } from './service-groups.ts';
import { Severing } from './severing.ts';
import { Sleepers } from './sleepers.ts';
import { Strangers } from './strangers.ts';
import { WorkerListeners, type WorkerListenersOptions } from './worker-listeners.ts';

const WHEEL_SLOTS = 128;

export interface RelayWorkerOptions extends WorkerListenersOptions {
  readonly node: string;
  readonly transport: Transport;
  readonly slabs: readonly SharedArrayBuffer[];
  /** Shared by the workers of a proxy; without it ClientIP affinity forgets. */
  readonly memory?: AffinityMemory;
  /** Shared by the workers of a proxy; without it nothing is limited. */
  readonly limits?: LimitSeat;
  /** A connect failed; `code` as in errno. */
  onConnectError?(code: string | undefined): void;
  /** By which a turn of the event loop is measured, in milliseconds; absent: the monotonic one. */
  readonly turnClock?: () => number;
}

export class RelayWorker {
  readonly #options: RelayWorkerOptions;
  readonly #matcher: Matcher;
  readonly #context: RelayContext;
  readonly #homes: RouteHomes;
  readonly #listeners: WorkerListeners;
  readonly #wheel = new TimeoutWheel<Member>(WHEEL_SLOTS);
  readonly #expiring = new Expiring(this.#wheel, (thrown) => this.#options.report('internal', thrown));
  readonly #severing = new Severing((thrown) => this.#options.report('internal', thrown));
  readonly #departures = new Departures(this.#severing, (thrown) => this.#options.report('internal', thrown));
  readonly #failing = new Departures(this.#severing, (thrown) => this.#options.report('internal', thrown));
  readonly #news: ConnectNews;
  #hasDeparted = false;
  readonly #groups: ServiceGroups;
  /** Who came to a shared listener and has not said yet whom they want. */
  readonly #strangers: Strangers;
  readonly #limits: WorkerLimits;
  readonly #tools: BalancerTools;
  readonly #sleepers = new Sleepers();
  readonly #orders: OrderRunner;

  constructor(options: RelayWorkerOptions) {
    this.#options = options;
    this.#groups = new ServiceGroups(options.slabs, this.#severing);
    this.#strangers = new Strangers(this.#groups.rowFor(undefined));
    this.#limits = new WorkerLimits(options.limits);
    this.#news = new ConnectNews((reports) => options.answer({ kind: 'connects', reports }));
    this.#matcher = createMatcher(EMPTY_TABLE, options.node);
    this.#tools = { random: Math.random, now: monotonicMs, memory: options.memory };
    this.#homes = new RouteHomes({
      matcher: this.#matcher,
      groups: this.#groups,
      wheel: this.#wheel,
      wake: (key) => this.#wake(key),
      home: { departures: this.#departures, failing: this.#failing, tools: this.#tools, news: this.#news },
    });
    this.#context = {
      transport: options.transport,
      wheel: this.#wheel,
      shaper: new Shaper(),
      onInternalError: (thrown) => options.report('internal', thrown),
      onConnectError: (code) => options.onConnectError?.(code),
    };
    this.#listeners = new WorkerListeners(options, {
      matcher: this.#matcher,
      context: this.#context,
      homes: this.#homes,
      groups: this.#groups,
      strangers: this.#strangers,
      limits: this.#limits,
      severing: this.#severing,
    });
    this.#orders = new OrderRunner({
      follow: (order) => this.#followInTurn(order),
      sleepers: this.#sleepers,
      now: options.turnClock ?? monotonicMs,
    });
  }

  /** Once a second. */
  tick(): void {
    this.#expiring.tick();
    this.#departures.tick(this.#wheel.now);
    this.#failing.tick(this.#wheel.now);
    this.#tellDeparted();
    this.#groups.sweep();
  }

  #tellDeparted(): void {
    const endpoints = this.#departures.endpoints;
    if (endpoints.length > 0 || this.#hasDeparted) this.#options.answer({ kind: 'departed', endpoints });
    this.#hasDeparted = endpoints.length > 0;
  }

  follow(order: SentOrder): void {
    // What is to end must not wait behind a large table.
    if (order.kind === 'cutoffs') {
      this.#groups.cutOff(order.cutoffs, order.now);
      return;
    }
    // And in its turn once more, for what a listener lets in that is still to be closed.
    if (order.kind === 'sever' && this.#orders.isBehind) this.#sever(order.outcome);
    this.#orders.take(order);
  }

  #followInTurn(order: Order): void {
    switch (order.kind) {
      case 'grow':
        this.#groups.grow(order.slab);
        return;
      case 'table':
        for (const slept of this.#sleepers.wakeFor(order)) this.#takeIn(slept);
        this.#takeIn(order);
        return;
      case 'maglev':
        for (const key of order.listeners) this.#homes.get(key)?.setMaglev(order.slots && new Uint16Array(order.slots));
        return;
      case 'health':
        for (const key of order.listeners) this.#homes.get(key)?.setHealth(order, this.#wheel.now);
        return;
      case 'cutoffs':
        // Followed already, when it came.
        return;
      case 'listen':
        this.#listeners.open(order.door);
        return;
      case 'unlisten':
        this.#listeners.close(order.door.id);
        return;
      case 'sever':
        this.#sever(order.outcome);
        return;
      case 'mark':
        this.#options.answer({ kind: 'done', sequence: order.sequence });
    }
  }

  #takeIn({ changes, slots, limits = [] }: TableOrder): void {
    for (const [uid, slot] of slots) this.#groups.assign(uid, slot);
    this.#limits.assign(limits);
    this.#homes.follow(patchMatcher(this.#matcher, changes));
  }

  /** Whether a Service that has this route slept until now. */
  #wake(route: RouteKey): boolean {
    const slept = this.#sleepers.wakeAt(route);
    if (slept !== undefined) this.#takeIn(slept);
    return slept !== undefined;
  }

  #sever(outcome: Outcome): void {
    for (const group of this.#groups.all()) this.#severing.sever(group.members, outcome);
    this.#severing.sever(this.#strangers.members, outcome);
  }
}
