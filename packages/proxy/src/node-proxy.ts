// The main thread of one proxy: what serves, what counts, what is said of both, and how it begins and ends. It decides; it
// owns no connection. Long, as each of its rooms is named here, and told of the others.
import type { Position } from '@weir/model/data-plane';
import { createLoop, type Loop } from '@weir/runtime';
import type { AdminPort } from './admin/admin-port.ts';
import { SlotBook } from './counters/slot-book.ts';
import { createDescriptorWatch } from './descriptor-watch.ts';
import { drainConnections } from './drain.ts';
import { UsageFlusher } from './flush/usage-flusher.ts';
import { createCeding } from './handover/ceding.ts';
import { NodeTurns } from './handover/node-turns.ts';
import type { HealthRoom } from './health/health-room.ts';
import { createHeart } from './heartbeat/heart.ts';
import type { ListenerBook } from './listeners/listener-book.ts';
import { createLiveness, type Liveness } from './liveness.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { ProxyStatus } from './proxy-status.ts';
import type { ProxySelfView } from './proxy-view.ts';
import { createServingSide } from './serving-side.ts';
import type { ProxyDisk } from './state-directory.ts';
import { followStore } from './store-follower.ts';
import type { CutoffRoom } from './table/cutoff-room.ts';
import type { MaglevRoom } from './table/maglev-room.ts';
import type { Propagation } from './table/propagation.ts';
import { StateKeeper } from './table/state-keeper.ts';
import type { TableRoom } from './table/table-room.ts';
import { DELAY_QUANTILES, watchEventLoopDelay } from './worker/event-loop-delay.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

const TICK_MS = 1_000;
const LAST_FLUSH_MS = 3_000;
/** For somebody who waits to take over, before a drain closes the listeners. */
const HANDOVER_MS = 5_000;

export interface NodeProxyParts {
  /** Undefined: nothing survives. */
  readonly disk: ProxyDisk | undefined;
  /** Whose port goes with the node; undefined: admin is off. */
  readonly admin: AdminPort | undefined;
}

export class NodeProxy {
  readonly slots: SlotBook = new SlotBook();
  readonly tables: TableRoom;
  readonly propagation: Propagation;
  readonly health: HealthRoom;
  /** By how much events of the main thread come too late, in seconds: see `DELAY_QUANTILES`. */
  readonly delays: Float64Array = new Float64Array(DELAY_QUANTILES.length);
  readonly #watch = watchEventLoopDelay(this.delays);
  readonly #settings: ProxySettings;
  readonly #disk: ProxyDisk | undefined;
  readonly #maglev: MaglevRoom;
  readonly #pool: WorkerPool;
  readonly #listeners: ListenerBook;
  readonly #turns: NodeTurns;
  readonly #liveness: Liveness;
  readonly #admin: AdminPort | undefined;
  readonly #status: ProxyStatus;
  readonly #flusher: UsageFlusher;
  readonly #keeper: StateKeeper | undefined;
  readonly #heart: Loop;
  readonly #flushing: Loop;
  readonly #ticking: Loop;
  readonly #following = new AbortController();
  readonly #hurry = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  readonly #cutoffs: CutoffRoom;
  #isDraining = false;
  #hasLeft = false;
  #isServing = false;
  #closing: Promise<void> | undefined;
  #unlisten: () => void = () => undefined;

  constructor(settings: ProxySettings, { disk, admin }: NodeProxyParts) {
    const { fleet, node, store, clock, log } = settings;
    const { slots } = this;
    this.#settings = settings;
    this.#disk = disk;
    this.#admin = admin;
    const startedAt = clock.now();
    const serving = createServingSide(settings, slots, () => this.#changed());
    this.tables = serving.tables;
    this.propagation = serving.propagation;
    this.health = serving.health;
    this.#maglev = serving.maglev;
    this.#cutoffs = serving.cutoffs;
    this.#listeners = serving.listeners;
    this.#pool = serving.pool;
    this.#turns = new NodeTurns({
      fleet,
      node,
      clock,
      log,
      listeners: this.#listeners,
      ceding: createCeding({
        listeners: this.#listeners,
        tables: this.tables,
        pool: () => this.#pool,
        store,
        clock,
        onCede: () => admin?.release(),
      }),
      prepared: () => this.#prepared(),
      onOurs: () => admin?.want(),
    });
    this.#flusher = new UsageFlusher({
      node,
      store,
      slots,
      clock,
      log: log.child({ part: 'flush' }),
      startedAt,
      highestLife: disk?.highestLife ?? 0,
      disk,
      onLife: () => this.#heart.trigger(),
    });
    this.#keeper =
      disk &&
      new StateKeeper({
        copy: disk.copy,
        clock,
        log: log.child({ part: 'state' }),
        table: () => this.tables.placed,
        cutoffs: () => this.#cutoffs.known,
      });
    this.#status = new ProxyStatus({
      settings,
      startedAt,
      slots,
      tables: this.tables,
      cutoffs: this.#cutoffs,
      listeners: this.#listeners,
      turns: this.#turns,
      flusher: this.#flusher,
      pool: this.#pool,
      health: this.health,
      isDraining: () => this.#isDraining,
      advice: () => admin?.advice,
    });
    this.#heart = createHeart({ store: store.heartbeats, clock, log, heartbeat: () => this.#status.heartbeat });
    this.#liveness = createLiveness(() => this.#pool.live, clock);
    const watchDescriptors = createDescriptorWatch({ log });
    this.#flushing = this.#eachSecond('flush', () => this.#flush());
    this.#ticking = this.#eachSecond('tick', async () => {
      this.#listeners.retry();
      this.#pool.look();
      this.#liveness.look();
      this.#watch.tick();
      watchDescriptors();
      this.#keeper?.tick();
      await this.#lookForSuccessor();
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
    await this.#turns.begin();
    this.#takeCopies();
    this.#follow().catch((error) => this.#failed.reject(error));
    this.#unlisten = this.#settings.store.onConnection((state) => {
      if (state !== 'ready') return;
      this.#flusher.sayAllAgain();
      this.#flushing.trigger();
      this.#heart.trigger();
    });
    for (const loop of [this.#flushing, this.#ticking, this.#heart]) loop.trigger();
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
  get isOthers(): boolean {
    return this.#turns.isOthers;
  }

  view(): ProxySelfView {
    return this.#status.view;
  }

  get pool(): WorkerPool {
    return this.#pool;
  }

  /** Drains for at most so long, brings the last counts to the ledger, and ends. Called again: no longer than that. */
  close(drainMs: number): Promise<void> {
    if (this.#closing !== undefined && drainMs === 0) this.#hurry.abort();
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const { store, node, clock, log } = this.#settings;
    this.#isDraining = true;
    this.#ready.reject(new Error('the proxy was closed'));
    await this.#turns.leave(Math.min(HANDOVER_MS, drainMs), this.#hurry.signal);
    this.#listeners.close();
    this.#turns.end();
    this.#hasLeft = true;
    this.#changed();
    await drainConnections({ pool: this.#pool, slots: this.slots, clock, drainMs, hurry: this.#hurry.signal });
    this.#following.abort();
    this.#maglev.close();
    this.health.close();
    this.#unlisten();
    await Promise.all([this.#flushing.close(), this.#ticking.close(), this.#heart.close()]);
    const gaveUp = await this.#flusher.finish(LAST_FLUSH_MS);
    if (gaveUp !== undefined) log.warn({ reason: gaveUp }, 'the last usage could not be flushed');
    await this.#keeper?.close();
    this.#watch.close();
    const { life } = this.#flusher;
    if (life !== undefined) await store.heartbeats.leave(node, life).catch(() => undefined); // Its time runs out anyway.
    await this.#pool.close();
  }

  /** What the disk holds serves until the store tells, and for as long as it does not. */
  #takeCopies(): void {
    const { table, cutoffs } = this.#disk ?? {};
    if (cutoffs !== undefined) this.#cutoffs.take(cutoffs);
    if (table !== undefined) this.tables.replace(table.table, table.position);
  }

  async #follow(): Promise<void> {
    const { store, clock, log } = this.#settings;
    await followStore({
      store,
      clock,
      log: log.child({ part: 'follow' }),
      cutoffs: this.#cutoffs.known,
      onCutoffs: (known) => this.#cutoffs.take(known),
      onTable: (table, position) => this.tables.replace(table, position),
      onChanges: (changes, table, revision) => this.tables.patch(changes, table, revision),
      onAway: () => this.#listeners.begin(),
      signal: this.#following.signal,
    });
  }

  #prepared(): Position | undefined {
    const isUp = this.#pool.live === this.#settings.workers && this.#listeners.hasBegun && !this.#isDraining;
    return isUp ? (this.tables.applied ?? undefined) : undefined;
  }

  #changed(): void {
    const isSettled = this.tables.applied !== null && this.#listeners.isSettled;
    // Of a start with thousands of listeners one heartbeat a second will do: each of them tells of all.
    if (isSettled || this.#isServing || this.#isDraining) this.#heart.trigger();
    if (!isSettled) return;
    this.#isServing = true;
    this.#turns.settled();
    this.#ready.resolve();
  }

  /** One that was not there when we left: admin is the port of whoever serves, however long we drain. */
  async #lookForSuccessor(): Promise<void> {
    if (this.#hasLeft && this.#admin?.address !== undefined && (await this.#turns.isTaken())) this.#admin.release();
  }

  async #flush(): Promise<void> {
    await this.#flusher.flush();
    const freed = this.slots.free(
      this.#pool.reached,
      ({ tenant }, reading) => tenant === '' || this.#flusher.isSettled(reading),
    );
    this.#flusher.forget(freed);
  }

  #eachSecond(what: string, run: () => Promise<void>): Loop {
    const { clock, log } = this.#settings;
    return createLoop({
      run,
      gapMs: 0,
      resyncMs: TICK_MS,
      retryMs: [TICK_MS, TICK_MS],
      clock,
      onError: (error, { failures }) =>
        log[failures === 1 ? 'warn' : 'debug']({ what, err: error }, 'it is tried again'),
    });
  }
}
