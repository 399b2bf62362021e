// Controls the life of a proxy's main thread: starts the components, follows the store, runs periodic tasks every
// second, and drains. The main thread makes decisions; the workers own the connections.
import { type Clock, Loop, wait } from '@weir/runtime';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import { createDescriptorMonitor } from '../status/host-warnings.ts';
import type { ProxySelfView } from '../status/proxy-view.ts';
import { createComponents, type ProxyComponents } from './components.ts';
import type { ProxySettings } from './proxy-settings.ts';
import type { StateDirectory } from './state-directory.ts';
import { followStore } from './store-follower.ts';
import type { WorkerPool } from './worker-pool.ts';

const TICK_INTERVAL_MS = 1_000;
const LAST_FLUSH_TIMEOUT_MS = 3_000;
/** How long the proxy waits at its end for the last lines of the access log, if nobody reads the standard output. */
const LAST_LOG_TIMEOUT_MS = 1_000;
/** How long a drain waits for a successor to take over before the listeners are closed. */
const TAKEOVER_TIMEOUT_MS = 5_000;
/**
 * How long persistent HTTP/1.1 connections may wait for a request in a drain, so that few requests cross the proxy's
 * FIN.
 */
const DRAIN_IDLE_MS = 2_000;
/**
 * In a shorter drain, idle connections end at once, so that they end with FIN and not with the reset after the drain.
 */
const MIN_DRAIN_WITH_IDLE_MS = 10_000;

export class Supervisor {
  readonly components: ProxyComponents;
  readonly #settings: ProxySettings;
  readonly #state: StateDirectory | undefined;
  readonly #journalLoop: Loop;
  readonly #flushLoop: Loop;
  readonly #tickLoop: Loop;
  readonly #stopFollowing = new AbortController();
  readonly #abortDrain = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  #isDraining = false;
  #hasReleasedNode = false;
  #isServing = false;
  /** Whether the store could not be read, so that the proxy serves what it knows. */
  #isStoreAway = false;
  #closing: Promise<void> | undefined;
  #removeConnectionListener: () => void = () => undefined;

  /** `state` is undefined if the proxy has no state directory. */
  constructor(settings: ProxySettings, state: StateDirectory | undefined) {
    this.#settings = settings;
    this.#state = state;
    this.components = createComponents(settings, {
      state,
      ready: this.#ready.promise,
      isDraining: () => this.#isDraining,
      onStateChange: () => this.#onStateChange(),
    });
    const { listeners, pool, descriptors, liveness, eventLoopDelay, stateSaver, localSuspensions } = this.components;
    const checkDescriptors = createDescriptorMonitor({ log: settings.log, open: () => descriptors.open });
    // The journal has a loop of its own, because a flush waits for a store that does not answer.
    this.#journalLoop = this.#createSecondLoop('journal', () => this.components.flusher.writeJournal());
    this.#flushLoop = this.#createSecondLoop('flush', () => this.#flush());
    this.#tickLoop = this.#createSecondLoop('tick', async () => {
      listeners.retry();
      pool.sampleStats();
      liveness.check();
      eventLoopDelay.tick();
      checkDescriptors();
      stateSaver?.tick();
      await localSuspensions?.sync();
      await this.#releaseAdminToSuccessor();
    });
    // A rejection of these promises must not end the process if the caller does not await them.
    this.#ready.promise.catch(() => undefined);
    this.#failed.promise.catch(() => undefined);
  }

  /** Resolves when the first table is applied and each of its listeners is open, allocated or reported as failed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Rejects when the main thread cannot continue because of a bug. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  async start(): Promise<void> {
    const { pool, takeover, flusher, heartbeatLoop, leases } = this.components;
    pool.start();
    await takeover.start();
    await this.components.localSuspensions?.sync();
    this.#restoreState();
    this.#follow().catch((error) => this.#failed.reject(error));
    this.#removeConnectionListener = this.#settings.store.onConnectionChange((state) => {
      if (state !== 'ready') return;
      this.#isStoreAway = false;
      flusher.resendAll();
      this.#flushLoop.trigger();
      heartbeatLoop.trigger();
      leases.onStoreReady();
    });
    for (const loop of this.#loops) loop.trigger();
  }

  /** Why this proxy must not get traffic; undefined if it may. */
  get notReady(): string | undefined {
    return this.components.status.notReady;
  }

  /** Why this proxy must be restarted; undefined if it need not be restarted. */
  get notLive(): string | undefined {
    return this.#isDraining ? undefined : this.components.liveness.problem;
  }

  view(): ProxySelfView {
    return this.components.status.view;
  }

  /** Drains for at most `drainMs`, sends the last usage to the store, and ends. A second call with 0 aborts the drain. */
  close(drainMs: number): Promise<void> {
    if (this.#closing !== undefined && drainMs === 0) this.#abortDrain.abort();
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const {
      takeover,
      listeners,
      pool,
      slots,
      maglev,
      health,
      flusher,
      leases,
      stateSaver,
      eventLoopDelay,
      accessLogs,
    } = this.components;
    const { store, node, clock, log } = this.#settings;
    this.#isDraining = true;
    this.#ready.reject(new Error('the proxy was closed'));
    await takeover.leave(Math.min(TAKEOVER_TIMEOUT_MS, drainMs), this.#abortDrain.signal);
    listeners.close();
    takeover.close();
    this.#hasReleasedNode = true;
    this.#onStateChange();
    pool.post({ kind: 'drain', idleMs: drainMs < MIN_DRAIN_WITH_IDLE_MS ? 0 : DRAIN_IDLE_MS });
    await drainConnections({ pool, slots, clock, drainMs, abort: this.#abortDrain.signal });
    this.#stopFollowing.abort();
    maglev.close();
    health.close();
    this.#removeConnectionListener();
    await Promise.all([...this.#loops.map((loop) => loop.close()), leases.close()]);
    const reason = await flusher.finish(LAST_FLUSH_TIMEOUT_MS);
    if (reason !== undefined) log.warn({ reason }, 'failed to flush the last usage');
    await stateSaver?.close();
    await this.components.localSuspensions?.close();
    eventLoopDelay.close();
    const { incarnation } = flusher;
    // If the removal fails, the heartbeat expires by itself.
    if (incarnation !== undefined) await store.heartbeats.remove(node, incarnation).catch(() => undefined);
    // At a mark, the workers send the last lines of their access logs.
    await pool.untilReached(pool.mark(), COMMAND_TIMEOUT_MS);
    const written = new AbortController();
    const timeout = wait(clock, LAST_LOG_TIMEOUT_MS, written.signal).catch(() => undefined);
    await Promise.race([accessLogs.written, timeout]);
    written.abort();
    await pool.close();
  }

  /**
   * Applies the table and the suspensions from the disk. The table and the suspensions stay in effect until newer ones
   * arrive from the store.
   */
  #restoreState(): void {
    const { table, cutoffs } = this.#state ?? {};
    if (cutoffs !== undefined) this.components.suspensions.update(cutoffs);
    if (table !== undefined) this.components.table.replace(table.table, table.position);
  }

  async #follow(): Promise<void> {
    const { store, clock, log } = this.#settings;
    const { suspensions, table, stateSaver } = this.components;
    await followStore({
      store,
      clock,
      log: log.child({ part: 'follow' }),
      suspensions: suspensions.known,
      onSuspensions: (known) => {
        stateSaver?.keepSuspensions(known);
        suspensions.update(known);
        void stateSaver?.saveSuspensions();
      },
      onTable: (complete, position) => table.replace(complete, position),
      onChanges: (changes, changed, revision) => table.patch(changes, changed, revision),
      onAway: () => {
        this.#isStoreAway = true;
        this.#onStateChange();
      },
      signal: this.#stopFollowing.signal,
    });
  }

  #onStateChange(): void {
    const { table, listeners, leases, heartbeatLoop, takeover } = this.components;
    if (!listeners.hasStarted && this.#mayOpenListeners) {
      leases.beforeListenersOpen();
      listeners.start();
    }
    const isSettled = table.applied !== null && listeners.isSettled;
    // While thousands of listeners open at the start, one heartbeat per second is enough, because each heartbeat
    // reports all listeners.
    if (isSettled || this.#isServing || this.#isDraining) heartbeatLoop.trigger();
    if (!isSettled) return;
    this.#isServing = true;
    takeover.onListenersSettled();
    this.#ready.resolve();
  }

  /**
   * Whether the table, the suspensions and the shares of limits suffice to serve clients. Without the suspensions of the store, a
   * suspended tenant would be served for a moment. Without shares, this proxy would refuse clients, or the proxies together would
   * exceed a limit.
   */
  get #mayOpenListeners(): boolean {
    const { suspensions, table, leases } = this.components;
    if (this.#isDraining) return false;
    return (suspensions.known !== undefined || this.#isStoreAway) && table.hasTable && leases.mayOpenListeners;
  }

  /**
   * Closes the admin port if another proxy serves the node now. That proxy may have started during this proxy's drain.
   */
  async #releaseAdminToSuccessor(): Promise<void> {
    const { admin, takeover } = this.components;
    if (this.#hasReleasedNode && admin?.address !== undefined && (await takeover.isHeldByOther())) admin.release();
  }

  async #flush(): Promise<void> {
    const { flusher, slots, pool } = this.components;
    await flusher.flush();
    const freed = slots.freeReleased(
      pool.reachedByAll,
      ({ tenant }, reading) => tenant === '' || flusher.isSlotAcknowledged(reading),
    );
    flusher.forget(freed);
  }

  get #loops(): readonly Loop[] {
    return [this.#journalLoop, this.#flushLoop, this.#tickLoop, this.components.heartbeatLoop];
  }

  #createSecondLoop(what: string, run: () => Promise<void>): Loop {
    const { clock, log } = this.#settings;
    return new Loop({
      run,
      gapMs: 0,
      resyncMs: TICK_INTERVAL_MS,
      retryMs: [TICK_INTERVAL_MS, TICK_INTERVAL_MS],
      clock,
      onError: (error, { failures }) =>
        log[failures === 1 ? 'warn' : 'debug']({ what, err: error }, 'periodic task failed; retrying'),
    });
  }
}

const DRAIN_POLL_INTERVAL_MS = 50;
/**
 * How long workers may take to close their listeners, and again to reset the remaining connections. A worker that takes
 * longer is assumed to hang.
 */
const COMMAND_TIMEOUT_MS = 3_000;

interface DrainOptions {
  readonly pool: WorkerPool;
  readonly slots: SlotRegistry;
  readonly clock: Clock;
  readonly drainMs: number;
  /** Ends the wait for open connections. */
  readonly abort: AbortSignal;
}

/**
 * Waits until all connections have ended or `drainMs` has passed, and resets the remaining connections. To be called
 * after the listeners were closed.
 */
async function drainConnections({ pool, slots, clock, drainMs, abort }: DrainOptions): Promise<void> {
  const untilIdle = async (timeoutMs: number, signal?: AbortSignal): Promise<void> => {
    const end = clock.monotonic() + timeoutMs;
    while (slots.activeConnections() > 0 && clock.monotonic() < end && signal?.aborted !== true) {
      await wait(clock, Math.min(DRAIN_POLL_INTERVAL_MS, end - clock.monotonic()), signal).catch(() => undefined);
    }
  };
  // Waits until all workers have closed their listeners, because connections that are accepted until then count as
  // open, too.
  await pool.untilReached(pool.mark(), COMMAND_TIMEOUT_MS);
  await untilIdle(drainMs, abort);
  if (slots.activeConnections() === 0) return;
  pool.post({ kind: 'terminate', outcome: 'drained' });
  await untilIdle(COMMAND_TIMEOUT_MS);
}
