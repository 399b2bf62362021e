// The part of a worker that does not depend on its thread: applies the supervisor's commands and owns the connections
// of its listeners.
import {
  type AffinityTable,
  type BalancerOptions,
  compileNetworks,
  createMatcher,
  EMPTY_TABLE,
  type Matcher,
  patchMatcher,
} from '@weir/model/data-plane';
import { HandshakeQueue } from '../accept/handshake-queue.ts';
import { PendingConnections } from '../accept/pending-connections.ts';
import { AccessLog } from '../access-log/access-log.ts';
import { createLogFlag, LogBuffer } from '../access-log/log-buffer.ts';
import { EndpointConnections } from '../http/endpoint-connections.ts';
import { RequestTurns } from '../http/request-turns.ts';
import { createStickyKey, deriveStickyKey } from '../http/sticky-cookie.ts';
import { composeIn } from '../http/worker-memory.ts';
import { AdmissionController } from '../limits/admission.ts';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import { Shaper } from '../limits/shaper.ts';
import { WorkerBuffers } from '../limits/tenant-buffers.ts';
import type { Outcome } from '../metering/outcome.ts';
import { TopClientsCounter } from '../metering/top-clients-counter.ts';
import { ServiceSessionsRegistry } from '../relay/service-sessions.ts';
import { type RelayContext, SendingSessions, type Session } from '../relay/session.ts';
import { SessionExpirer, SessionQueue, SessionTerminator } from '../relay/session-terminator.ts';
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
  /**
   * The table of ClientIP affinity, which all workers share. Without it, affinity ends with the last connection of a
   * client.
   */
  readonly affinityTable?: AffinityTable;
  /** The key of sticky cookies if there is no fleet secret. All workers share the key. By default a random key. */
  readonly stickyKey?: Uint8Array;
  /** CIDRs of the HTTP proxies in front of the proxies, whose fields about the client are trusted. By default none. */
  readonly trustForwarded?: readonly string[] | undefined;
  /** Whether endpoints get Forwarded (RFC 7239) in addition to X-Forwarded-For; false by default. */
  readonly writeForwarded?: boolean | undefined;
  /** Whether to count the clients with the most bytes and connections of each tenant; false by default. */
  readonly countsClients?: boolean | undefined;
  /** The limiter state, which all workers share. Without it, nothing is limited. */
  readonly limiterMemory?: WorkerLimiterMemory;
  /** Tells whether the main thread has taken the last lines of the access log. Without it, only one chunk is sent. */
  readonly accessLogFlag?: SharedArrayBuffer;
  /** Called when a connection attempt to an endpoint has failed. `code` is an errno name. */
  onConnectError?(code: string | undefined): void;
  /** Returns milliseconds of a clock that never goes back; by default the kernel's monotonic clock. */
  readonly sliceClock?: () => number;
}

export class RelayWorker {
  readonly #options: RelayWorkerOptions;
  readonly #matcher: Matcher;
  readonly #context: RelayContext;
  readonly #upstreams: UpstreamRegistry;
  readonly #listeners: WorkerListeners;
  readonly #wheel = new TimeoutWheel<Session>(WHEEL_SLOTS);
  readonly #expirer: SessionExpirer;
  readonly #terminator: SessionTerminator;
  readonly #removedDrainer: EndpointDrainer;
  readonly #unhealthyDrainer: EndpointDrainer;
  readonly #healthReporter: PassiveHealthReporter;
  #hasDraining = false;
  readonly #services: ServiceSessionsRegistry;
  readonly #pendingConnections: PendingConnections;
  readonly #admission: AdmissionController;
  readonly #balancerOptions: BalancerOptions;
  readonly #commands: CommandRunner;
  readonly #drainNotifications: SessionQueue;

  constructor(options: RelayWorkerOptions) {
    if (options.transport.writeMemory !== undefined) composeIn(options.transport.writeMemory);
    this.#options = options;
    const sliceClock = options.sliceClock ?? monotonicMs;
    const onInternalError = (thrown: unknown): void => options.reportError('internal', thrown);
    this.#expirer = new SessionExpirer(this.#wheel, onInternalError, sliceClock);
    this.#terminator = new SessionTerminator(onInternalError, sliceClock);
    this.#drainNotifications = new SessionQueue(onInternalError, sliceClock);
    this.#removedDrainer = new EndpointDrainer(this.#terminator, onInternalError);
    this.#unhealthyDrainer = new EndpointDrainer(this.#terminator, onInternalError);
    this.#services = new ServiceSessionsRegistry(options.counterBlocks, this.#terminator);
    this.#pendingConnections = new PendingConnections(this.#services.countersFor(undefined));
    this.#admission = new AdmissionController(options.limiterMemory, () => options.transport.turns.nowMs);
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
        stickyKey: deriveStickyKey(options.sealer) ?? options.stickyKey ?? createStickyKey(),
      },
    });
    const flag = options.accessLogFlag ?? createLogFlag();
    const buffer = new LogBuffer({ flag, send: (chunk) => options.send({ kind: 'access-log', chunk }) });
    this.#context = {
      transport: options.transport,
      wheel: this.#wheel,
      shaper: new Shaper(),
      sending: new SendingSessions(),
      handshakes: new HandshakeQueue({ turns: options.transport.turns, now: sliceClock }),
      requestTurns: new RequestTurns({ turns: options.transport.turns, now: sliceClock }),
      buffers: new WorkerBuffers(),
      endpointConnections: new EndpointConnections(options.transport),
      sealer: options.sealer,
      isDraining: false,
      drainIdleMs: 0,
      accessLog: new AccessLog({
        node: options.node,
        buffer,
        now: () => options.transport.turns.nowMs,
        wallClock: options.wallClock,
      }),
      topClients: options.countsClients === true ? new TopClientsCounter(options.wallClock ?? Date.now) : undefined,
      trustForwarded: compileNetworks(options.trustForwarded ?? []),
      writeForwarded: options.writeForwarded ?? false,
      onInternalError,
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
      now: sliceClock,
    });
  }

  /** Advances all timeouts. To be called once a second. */
  tick(): void {
    // Comes first, because a client that has acknowledged bytes is not idle.
    this.#context.sending.tick();
    this.#expirer.tick();
    this.#removedDrainer.tick(this.#wheel.now);
    this.#unhealthyDrainer.tick(this.#wheel.now);
    this.#reportDraining();
    this.#services.removeIdle();
    this.#context.endpointConnections.tick(this.#wheel.now);
    this.#listeners.tick();
  }

  #reportDraining(): void {
    const endpoints = this.#removedDrainer.endpoints;
    if (endpoints.length > 0 || this.#hasDraining) this.#options.send({ kind: 'draining-endpoints', endpoints });
    this.#hasDraining = endpoints.length > 0;
  }

  apply(command: SentCommand): void {
    // Suspensions must not wait behind a large table.
    if (command.kind === 'suspensions') {
      this.#services.applySuspensions(command.suspensions, command.now);
      return;
    }
    // If earlier commands are waiting, the open sessions are terminated now. The sessions that are opened in between are
    // terminated when this command is applied in order: until then, listeners that earlier commands close may still
    // accept connections.
    if (command.kind === 'terminate' && this.#commands.isBehind) this.#terminateAll(command.outcome);
    this.#commands.add(command);
  }

  #applyInOrder(command: WorkerCommand): void {
    switch (command.kind) {
      case 'add-counter-block':
        this.#services.addCounterBlock(command.block);
        return;
      case 'table':
        this.#applyTable(command);
        return;
      case 'maglev':
        for (const key of command.listeners)
          this.#upstreams.get(key)?.setMaglev(command.slots && new Uint16Array(command.slots));
        return;
      case 'health':
        for (const key of command.listeners) this.#upstreams.get(key)?.setHealth(command, this.#wheel.now);
        return;
      case 'suspensions':
        // `apply` has already handled suspensions.
        return;
      case 'open-listener':
        this.#listeners.open(command.listener);
        return;
      case 'close-listener':
        this.#listeners.close(command.listener.id);
        return;
      case 'drain':
        this.#drain(command.idleMs);
        return;
      case 'terminate':
        this.#terminateAll(command.outcome);
        return;
      case 'report-clients': {
        const { tenant, request } = command;
        this.#options.send({ kind: 'clients', request, clients: this.#context.topClients?.resultFor(tenant) });
        return;
      }
      case 'mark':
        this.#context.accessLog.flush();
        this.#options.send({ kind: 'mark-reached', sequence: command.sequence });
    }
  }

  #applyTable({ changes, slots, limits = [] }: TableCommand): void {
    for (const [uid, slot] of slots) this.#services.assignSlot(uid, slot);
    this.#admission.assign(limits);
    this.#upstreams.applyChanges(patchMatcher(this.#matcher, changes));
  }

  #drain(idleMs: number): void {
    this.#context.isDraining = true;
    this.#context.drainIdleMs = idleMs;
    this.#context.endpointConnections.drain();
    for (const { sessions } of this.#services.all())
      this.#drainNotifications.add([...sessions], (session) => session.onWorkerDrain?.());
  }

  #terminateAll(outcome: Outcome): void {
    for (const service of this.#services.all()) this.#terminator.terminate(service.sessions, outcome);
    this.#terminator.terminate(this.#pendingConnections.sessions, outcome);
  }
}
