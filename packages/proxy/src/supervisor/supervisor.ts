// The main thread of one proxy: what serves, what counts, what is said of both, and how it begins and ends. It decides; it
// owns no connection. Long, as each of its rooms is named here, and told of the others.
import type { TablePosition } from '@weir/model/data-plane';
import { createLoop, type Loop } from '@weir/runtime';
import { SlotRegistry } from '../metering/slot-registry.ts';
import { UsageFlusher } from '../metering/usage-flusher.ts';
import type { AdminPort } from '../status/admin-port.ts';
import { createHeartbeatLoop } from '../status/heartbeat.ts';
import { createDescriptorMonitor } from '../status/host-warnings.ts';
import { createWorkerLiveness, ProxyStatus, type WorkerLiveness } from '../status/proxy-status.ts';
import type { ProxySelfView } from '../status/proxy-view.ts';
import { NodeTakeover } from '../takeover/node-takeover.ts';
import { createTakeoverActions } from '../takeover/predecessor.ts';
import type { HealthMonitor } from '../upstream/health/health-monitor.ts';
import { DELAY_QUANTILES, startEventLoopDelayMonitor } from '../worker/event-loop-delay.ts';
import type { ListenerReconciler } from './listeners/listener-reconciler.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { createServingComponents, drainConnections } from './serving-components.ts';
import type { StateDirectory } from './state-directory.ts';
import { StateSaver } from './state-files.ts';
import { followStore } from './store-follower.ts';
import type { MaglevTables } from './table/maglev-tables.ts';
import type { PropagationLatency } from './table/propagation.ts';
import type { Suspensions } from './table/suspensions.ts';
import type { TableDistributor } from './table/table-distributor.ts';
import type { WorkerPool } from './worker-pool.ts';

const TICK_INTERVAL_MS = 1_000;
const LAST_FLUSH_TIMEOUT_MS = 3_000;
/** For somebody who waits to take over, before a drain closes the listeners. */
const TAKEOVER_TIMEOUT_MS = 5_000;

export interface SupervisorOptions {
  /** Undefined: nothing survives. */
  readonly state: StateDirectory | undefined;
  /** Whose port goes with the node; undefined: admin is off. */
  readonly admin: AdminPort | undefined;
}

export class Supervisor {
  readonly slots: SlotRegistry = new SlotRegistry();
  readonly table: TableDistributor;
  readonly propagation: PropagationLatency;
  readonly health: HealthMonitor;
  /** By how much events of the main thread come too late, in seconds: see `DELAY_QUANTILES`. */
  readonly delaySeconds: Float64Array = new Float64Array(DELAY_QUANTILES.length);
  readonly #eventLoopDelay = startEventLoopDelayMonitor(this.delaySeconds);
  readonly #settings: ProxySettings;
  readonly #state: StateDirectory | undefined;
  readonly #maglev: MaglevTables;
  readonly #pool: WorkerPool;
  readonly #listeners: ListenerReconciler;
  readonly #takeover: NodeTakeover;
  readonly #liveness: WorkerLiveness;
  readonly #admin: AdminPort | undefined;
  readonly #status: ProxyStatus;
  readonly #flusher: UsageFlusher;
  readonly #stateSaver: StateSaver | undefined;
  readonly #heartbeatLoop: Loop;
  readonly #flushLoop: Loop;
  readonly #tickLoop: Loop;
  readonly #stopFollowing = new AbortController();
  readonly #abortDrain = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  readonly #suspensions: Suspensions;
  #isDraining = false;
  #hasReleasedNode = false;
  #isServing = false;
  #closing: Promise<void> | undefined;
  #removeConnectionListener: () => void = () => undefined;

  constructor(settings: ProxySettings, { state, admin }: SupervisorOptions) {
    const { fleet, node, store, clock, log } = settings;
    const { slots } = this;
    this.#settings = settings;
    this.#state = state;
    this.#admin = admin;
    const startedAt = clock.now();
    const serving = createServingComponents(settings, slots, () => this.#onStateChange());
    this.table = serving.table;
    this.propagation = serving.propagation;
    this.health = serving.health;
    this.#maglev = serving.maglev;
    this.#suspensions = serving.suspensions;
    this.#listeners = serving.listeners;
    this.#pool = serving.pool;
    this.#takeover = new NodeTakeover({
      fleet,
      node,
      clock,
      log,
      listeners: this.#listeners,
      actions: createTakeoverActions({
        listeners: this.#listeners,
        table: this.table,
        pool: () => this.#pool,
        store,
        clock,
        onCede: () => admin?.release(),
      }),
      tableReadyToServe: () => this.#tableReadyToServe(),
      onNodeAcquired: () => admin?.acquire(),
    });
    this.#flusher = new UsageFlusher({
      node,
      store,
      slots,
      clock,
      log: log.child({ part: 'flush' }),
      startedAt,
      highestIncarnation: state?.highestIncarnation ?? 0,
      state,
      onIncarnation: () => this.#heartbeatLoop.trigger(),
    });
    this.#stateSaver =
      state &&
      new StateSaver({
        files: state.stateFiles,
        clock,
        log: log.child({ part: 'state' }),
        table: () => this.table.placed,
        suspensions: () => this.#suspensions.known,
      });
    this.#status = new ProxyStatus({
      settings,
      startedAt,
      slots,
      table: this.table,
      suspensions: this.#suspensions,
      listeners: this.#listeners,
      takeover: this.#takeover,
      flusher: this.#flusher,
      pool: this.#pool,
      health: this.health,
      isDraining: () => this.#isDraining,
      adminWarning: () => admin?.warning,
    });
    this.#heartbeatLoop = createHeartbeatLoop({
      store: store.heartbeats,
      clock,
      log,
      heartbeat: () => this.#status.heartbeat,
    });
    this.#liveness = createWorkerLiveness(() => this.#pool.live, clock);
    const watchDescriptors = createDescriptorMonitor({ log });
    this.#flushLoop = this.#eachSecond('flush', () => this.#flush());
    this.#tickLoop = this.#eachSecond('tick', async () => {
      this.#listeners.retry();
      this.#pool.sampleStats();
      this.#liveness.check();
      this.#eventLoopDelay.tick();
      watchDescriptors();
      this.#stateSaver?.tick();
      await this.#releaseAdminToSuccessor();
    });
    // Whoever does not wait for them must not be ended by them.
    this.#ready.promise.catch(() => undefined);
    this.#failed.promise.catch(() => undefined);
  }

  /** The first table is applied, and each of its listeners is open, held or reported as failed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Rejects when the main thread cannot go on: a bug. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  async start(): Promise<void> {
    this.#pool.start();
    await this.#takeover.start();
    this.#restoreState();
    this.#follow().catch((error) => this.#failed.reject(error));
    this.#removeConnectionListener = this.#settings.store.onConnectionChange((state) => {
      if (state !== 'ready') return;
      this.#flusher.resendAll();
      this.#flushLoop.trigger();
      this.#heartbeatLoop.trigger();
    });
    for (const loop of [this.#flushLoop, this.#tickLoop, this.#heartbeatLoop]) loop.trigger();
  }

  /** Undefined: it may get traffic. */
  get notReady(): string | undefined {
    return this.#status.notReady;
  }

  /** Undefined: a restart would help nobody. */
  get notLive(): string | undefined {
    return this.#isDraining ? undefined : this.#liveness.problem;
  }

  /** Another proxy has the node. */
  get isOtherProxyServing(): boolean {
    return this.#takeover.isOtherProxyServing;
  }

  view(): ProxySelfView {
    return this.#status.view;
  }

  get pool(): WorkerPool {
    return this.#pool;
  }

  /** Drains for at most so long, brings the last counts to the ledger, and ends. Called again: no longer than that. */
  close(drainMs: number): Promise<void> {
    if (this.#closing !== undefined && drainMs === 0) this.#abortDrain.abort();
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const { store, node, clock, log } = this.#settings;
    this.#isDraining = true;
    this.#ready.reject(new Error('the proxy was closed'));
    await this.#takeover.leave(Math.min(TAKEOVER_TIMEOUT_MS, drainMs), this.#abortDrain.signal);
    this.#listeners.close();
    this.#takeover.close();
    this.#hasReleasedNode = true;
    this.#onStateChange();
    await drainConnections({ pool: this.#pool, slots: this.slots, clock, drainMs, abort: this.#abortDrain.signal });
    this.#stopFollowing.abort();
    this.#maglev.close();
    this.health.close();
    this.#removeConnectionListener();
    await Promise.all([this.#flushLoop.close(), this.#tickLoop.close(), this.#heartbeatLoop.close()]);
    const gaveUp = await this.#flusher.finish(LAST_FLUSH_TIMEOUT_MS);
    if (gaveUp !== undefined) log.warn({ reason: gaveUp }, 'the last usage could not be flushed');
    await this.#stateSaver?.close();
    this.#eventLoopDelay.close();
    const { incarnation } = this.#flusher;
    if (incarnation !== undefined) await store.heartbeats.remove(node, incarnation).catch(() => undefined); // Its time runs out anyway.
    await this.#pool.close();
  }

  /** What the disk holds serves until the store tells, and for as long as it does not. */
  #restoreState(): void {
    const { table, cutoffs } = this.#state ?? {};
    if (cutoffs !== undefined) this.#suspensions.update(cutoffs);
    if (table !== undefined) this.table.replace(table.table, table.position);
  }

  async #follow(): Promise<void> {
    const { store, clock, log } = this.#settings;
    await followStore({
      store,
      clock,
      log: log.child({ part: 'follow' }),
      suspensions: this.#suspensions.known,
      onSuspensions: (known) => this.#suspensions.update(known),
      onTable: (table, position) => this.table.replace(table, position),
      onChanges: (changes, table, revision) => this.table.patch(changes, table, revision),
      onAway: () => this.#listeners.start(),
      signal: this.#stopFollowing.signal,
    });
  }

  #tableReadyToServe(): TablePosition | undefined {
    const isUp = this.#pool.live === this.#settings.workers && this.#listeners.hasStarted && !this.#isDraining;
    return isUp ? (this.table.applied ?? undefined) : undefined;
  }

  #onStateChange(): void {
    const isSettled = this.table.applied !== null && this.#listeners.isSettled;
    // Of a start with thousands of listeners one heartbeat a second will do: each of them tells of all.
    if (isSettled || this.#isServing || this.#isDraining) this.#heartbeatLoop.trigger();
    if (!isSettled) return;
    this.#isServing = true;
    this.#takeover.onListenersSettled();
    this.#ready.resolve();
  }

  /** One that was not there when we left: admin is the port of whoever serves, however long we drain. */
  async #releaseAdminToSuccessor(): Promise<void> {
    if (this.#hasReleasedNode && this.#admin?.address !== undefined && (await this.#takeover.isHeldByOther()))
      this.#admin.release();
  }

  async #flush(): Promise<void> {
    await this.#flusher.flush();
    const freed = this.slots.freeReleased(
      this.#pool.reached,
      ({ tenant }, reading) => tenant === '' || this.#flusher.isSlotAcknowledged(reading),
    );
    this.#flusher.forget(freed);
  }

  #eachSecond(what: string, run: () => Promise<void>): Loop {
    const { clock, log } = this.#settings;
    return createLoop({
      run,
      gapMs: 0,
      resyncMs: TICK_INTERVAL_MS,
      retryMs: [TICK_INTERVAL_MS, TICK_INTERVAL_MS],
      clock,
      onError: (error, { failures }) =>
        log[failures === 1 ? 'warn' : 'debug']({ what, err: error }, 'it is tried again'),
    });
  }
}
