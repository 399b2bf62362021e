// A worker without its thread: follows orders, and owns what its listeners let in for its whole life.
import {
  type AffinityTable,
  type BalancerOptions,
  createMatcher,
  EMPTY_TABLE,
  type Matcher,
  patchMatcher,
} from '@weir/model/data-plane';
import { PendingConnections } from '../accept/pending-connection.ts';
import { AdmissionController } from '../limits/admission.ts';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import { Shaper } from '../limits/shaper.ts';
import type { Outcome } from '../metering/outcome.ts';
import { ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import type { RelayContext, Session } from '../relay/session.ts';
import { SessionExpirer, SessionTerminator } from '../relay/session-terminator.ts';
import { TimeoutWheel } from '../relay/timeout-wheel.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import { PassiveHealthReporter } from '../upstream/connect-reports.ts';
import { EndpointDrainer } from '../upstream/endpoint-drainer.ts';
import { UpstreamRegistry } from '../upstream/upstream-registry.ts';
import type { SentCommand, TableCommand, WorkerCommand } from './messages.ts';
import { CommandRunner } from './table-delivery.ts';
import { monotonicMs } from './time-sliced-queue.ts';
import { WorkerListeners, type WorkerListenersOptions } from './worker-listeners.ts';

const WHEEL_SLOTS = 128;

export interface RelayWorkerOptions extends WorkerListenersOptions {
  readonly node: string;
  readonly transport: TcpTransport;
  readonly counterBlocks: readonly SharedArrayBuffer[];
  /** Shared by the workers of a proxy; without it ClientIP affinity forgets. */
  readonly affinityTable?: AffinityTable;
  /** Shared by the workers of a proxy; without it nothing is limited. */
  readonly limiterMemory?: WorkerLimiterMemory;
  /** A connect failed; `code` as in errno. */
  onConnectError?(code: string | undefined): void;
  /** By which a turn of the event loop is measured, in milliseconds; absent: the monotonic one. */
  readonly sliceClock?: () => number;
}

export class RelayWorker {
  readonly #options: RelayWorkerOptions;
  readonly #matcher: Matcher;
  readonly #context: RelayContext;
  readonly #upstreams: UpstreamRegistry;
  readonly #listeners: WorkerListeners;
  readonly #wheel = new TimeoutWheel<Session>(WHEEL_SLOTS);
  readonly #expirer = new SessionExpirer(this.#wheel, (thrown) => this.#options.reportError('internal', thrown));
  readonly #terminator = new SessionTerminator((thrown) => this.#options.reportError('internal', thrown));
  readonly #removedDrainer = new EndpointDrainer(this.#terminator, (thrown) =>
    this.#options.reportError('internal', thrown),
  );
  readonly #unhealthyDrainer = new EndpointDrainer(this.#terminator, (thrown) =>
    this.#options.reportError('internal', thrown),
  );
  readonly #healthReporter: PassiveHealthReporter;
  #hasDraining = false;
  readonly #services: ServiceSessionsRegistry;
  /** Who came to a shared listener and has not said yet whom they want. */
  readonly #pendingConnections: PendingConnections;
  readonly #admission: AdmissionController;
  readonly #balancerOptions: BalancerOptions;
  readonly #commands: CommandRunner;

  constructor(options: RelayWorkerOptions) {
    this.#options = options;
    this.#services = new ServiceSessionsRegistry(options.counterBlocks, this.#terminator);
    this.#pendingConnections = new PendingConnections(this.#services.countersFor(undefined));
    this.#admission = new AdmissionController(options.limiterMemory);
    this.#healthReporter = new PassiveHealthReporter((reports) => options.send({ kind: 'passive-health', reports }));
    this.#matcher = createMatcher(EMPTY_TABLE, options.node);
    this.#balancerOptions = { random: Math.random, now: monotonicMs, affinityTable: options.affinityTable };
    this.#upstreams = new UpstreamRegistry({
      matcher: this.#matcher,
      services: this.#services,
      wheel: this.#wheel,
      loadLazyRoute: (key) => this.#commands.loadLazyRoute(key),
      upstreamOptions: {
        removedDrainer: this.#removedDrainer,
        unhealthyDrainer: this.#unhealthyDrainer,
        balancerOptions: this.#balancerOptions,
        healthReporter: this.#healthReporter,
      },
    });
    this.#context = {
      transport: options.transport,
      wheel: this.#wheel,
      shaper: new Shaper(),
      onInternalError: (thrown) => options.reportError('internal', thrown),
      onConnectError: (code) => options.onConnectError?.(code),
    };
    this.#listeners = new WorkerListeners(options, {
      matcher: this.#matcher,
      context: this.#context,
      upstreams: this.#upstreams,
      services: this.#services,
      pendingConnections: this.#pendingConnections,
      admission: this.#admission,
      terminator: this.#terminator,
    });
    this.#commands = new CommandRunner({
      apply: (command) => this.#applyInOrder(command),
      now: options.sliceClock ?? monotonicMs,
    });
  }

  /** Once a second. */
  tick(): void {
    this.#expirer.tick();
    this.#removedDrainer.tick(this.#wheel.now);
    this.#unhealthyDrainer.tick(this.#wheel.now);
    this.#reportDraining();
    this.#services.removeIdle();
  }

  #reportDraining(): void {
    const endpoints = this.#removedDrainer.endpoints;
    if (endpoints.length > 0 || this.#hasDraining) this.#options.send({ kind: 'draining-endpoints', endpoints });
    this.#hasDraining = endpoints.length > 0;
  }

  apply(order: SentCommand): void {
    // What is to end must not wait behind a large table.
    if (order.kind === 'suspensions') {
      this.#services.applySuspensions(order.suspensions, order.now);
      return;
    }
    // And in its turn once more, for what a listener lets in that is still to be closed.
    if (order.kind === 'terminate' && this.#commands.isBehind) this.#terminateAll(order.outcome);
    this.#commands.add(order);
  }

  #applyInOrder(order: WorkerCommand): void {
    switch (order.kind) {
      case 'add-counter-block':
        this.#services.addCounterBlock(order.block);
        return;
      case 'table':
        this.#applyTable(order);
        return;
      case 'maglev':
        for (const key of order.listeners)
          this.#upstreams.get(key)?.setMaglev(order.slots && new Uint16Array(order.slots));
        return;
      case 'health':
        for (const key of order.listeners) this.#upstreams.get(key)?.setHealth(order, this.#wheel.now);
        return;
      case 'suspensions':
        // Followed already, when it came.
        return;
      case 'open-listener':
        this.#listeners.open(order.listener);
        return;
      case 'close-listener':
        this.#listeners.close(order.listener.id);
        return;
      case 'terminate':
        this.#terminateAll(order.outcome);
        return;
      case 'mark':
        this.#options.send({ kind: 'mark-reached', sequence: order.sequence });
    }
  }

  #applyTable({ changes, slots, limits = [] }: TableCommand): void {
    for (const [uid, slot] of slots) this.#services.assignSlot(uid, slot);
    this.#admission.assign(limits);
    this.#upstreams.applyChanges(patchMatcher(this.#matcher, changes));
  }

  #terminateAll(outcome: Outcome): void {
    for (const group of this.#services.all()) this.#terminator.terminate(group.sessions, outcome);
    this.#terminator.terminate(this.#pendingConnections.sessions, outcome);
  }
}
