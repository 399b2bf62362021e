// The main thread of one proxy: its parts, and what each is told. It decides; it owns no connection.
import type { Heartbeat } from '@weir/model';
import { createLoop, type Loop } from '@weir/runtime';
import type { KnownCutoffs } from '@weir/store';
import { SlotBook } from './counters/slot-book.ts';
import { drainConnections } from './drain.ts';
import { UsageFlusher } from './flush/usage-flusher.ts';
import { createHeart } from './heartbeat/heart.ts';
import { localAddresses } from './heartbeat/local-addresses.ts';
import { ListenerBook } from './listeners/listener-book.ts';
import { probe } from './listeners/probe.ts';
import { NodeGuard } from './node-guard.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { type ProxySelfView, serviceCounts } from './proxy-view.ts';
import type { ProxyDisk } from './state-directory.ts';
import { followStore } from './store-follower.ts';
import { MaglevRoom } from './table/maglev-room.ts';
import { StateKeeper } from './table/state-keeper.ts';
import { TableRoom } from './table/table-room.ts';
import { WorkerPool } from './workers/worker-pool.ts';
import { WORKER_ENTRY } from './workers/worker-thread.ts';

const TICK_MS = 1_000;
const LAST_FLUSH_MS = 3_000;

export class NodeProxy {
  readonly slots: SlotBook = new SlotBook();
  readonly tables: TableRoom;
  readonly #settings: ProxySettings;
  readonly #disk: ProxyDisk | undefined;
  readonly #startedAt: number;
  readonly #maglev: MaglevRoom;
  readonly #pool: WorkerPool;
  readonly #listeners: ListenerBook;
  readonly #guard: NodeGuard;
  readonly #flusher: UsageFlusher;
  readonly #keeper: StateKeeper | undefined;
  readonly #heart: Loop;
  readonly #flushing: Loop;
  readonly #ticking: Loop;
  readonly #following = new AbortController();
  readonly #hurry = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  #cutoffs: KnownCutoffs | undefined;
  #cutoffMarks: { readonly mark: number; readonly sequence: number }[] = [];
  #cutoffSequence = -1;
  #conflict: string | undefined;
  #isDraining = false;
  #closing: Promise<void> | undefined;
  #unlisten: () => void = () => undefined;

  constructor(settings: ProxySettings, disk: ProxyDisk | undefined) {
    const { fleet, node, store, clock, log, workers, workerEntry = WORKER_ENTRY } = settings;
    const { slots } = this;
    this.#settings = settings;
    this.#disk = disk;
    this.#startedAt = clock.now();
    this.tables = new TableRoom({
      node,
      slots,
      pool: () => this.#pool,
      onRoutes: (keys) => {
        this.#maglev.settle(keys);
        this.#listeners.settle(keys);
      },
    });
    this.#maglev = new MaglevRoom({
      routes: this.tables.matcher.routes,
      clock,
      post: (order) => this.#pool.post(order),
    });
    this.#listeners = new ListenerBook({
      matcher: this.tables.matcher,
      probe,
      post: (order) => this.#pool.post(order),
      mark: () => this.#pool.mark(),
      reached: () => this.#pool.reached,
      workers: () => this.#pool.ids,
      now: () => clock.now(),
      onChange: () => this.#changed(),
    });
    this.#pool = new WorkerPool({
      count: workers,
      node,
      entry: workerEntry,
      slots,
      clock,
      log: log.child({ part: 'workers' }),
      welcome: (worker) => [
        this.tables.welcome(),
        ...this.#maglev.welcome(),
        { kind: 'cutoffs', cutoffs: this.#cutoffs?.cutoffs ?? [], now: clock.now() },
        ...this.#listeners.ordersFor(worker),
      ],
      onListening: (worker, door) => this.#listeners.onListening(worker, door),
      onListenFailed: (worker, door, code) => this.#listeners.onListenFailed(worker, door, code),
      onWorkerEnd: (worker) => this.#listeners.onWorkerEnd(worker),
      onReached: () => this.#reached(),
    });
    this.#guard = new NodeGuard({ fleet, node, clock, onChange: (conflict) => this.#judge(conflict) });
    this.#flusher = new UsageFlusher({
      node,
      store,
      slots,
      clock,
      log: log.child({ part: 'flush' }),
      startedAt: this.#startedAt,
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
        cutoffs: () => this.#cutoffs,
      });
    this.#heart = createHeart({ store: store.heartbeats, clock, log, heartbeat: () => this.#heartbeat() });
    this.#flushing = this.#eachSecond('flush', () => this.#flush());
    this.#ticking = this.#eachSecond('tick', async () => {
      this.#listeners.retry();
      this.#keeper?.tick();
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
    await this.#guard.take();
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
    if (this.#isDraining) return 'draining';
    if (this.tables.applied === null) return 'no routing table yet';
    return this.#pool.live === 0 ? 'no worker is up' : undefined;
  }

  view(): ProxySelfView {
    return {
      ...this.#says(),
      life: this.#flusher.life ?? null,
      conflict: this.#conflict ?? null,
      services: serviceCounts(this.slots),
    };
  }

  #says(): Omit<Heartbeat, 'life'> {
    const { node, version = 'dev', addresses } = this.#settings;
    return {
      node,
      version,
      startedAt: this.#startedAt,
      draining: this.#isDraining,
      addresses: localAddresses(addresses ?? this.tables.nodeEntry?.bindAddresses ?? []),
      applied: this.tables.applied,
      cutoffSequence: this.#cutoffSequence,
      listeners: this.#listeners.reports(),
      workers: this.#pool.live,
      connections: this.slots.active(),
    };
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
    this.#listeners.close();
    this.#guard.release();
    this.#changed();
    await drainConnections({ pool: this.#pool, slots: this.slots, clock, drainMs, hurry: this.#hurry.signal });
    this.#following.abort();
    this.#maglev.close();
    this.#unlisten();
    await Promise.all([this.#flushing.close(), this.#ticking.close(), this.#heart.close()]);
    const gaveUp = await this.#flusher.finish(LAST_FLUSH_MS);
    if (gaveUp !== undefined) log.warn({ reason: gaveUp }, 'the last usage could not be flushed');
    await this.#keeper?.close();
    const { life } = this.#flusher;
    if (life !== undefined) await store.heartbeats.leave(node, life).catch(() => undefined); // Its time runs out anyway.
    await this.#pool.close();
  }

  /** What the disk holds serves until the store tells, and for as long as it does not. */
  #takeCopies(): void {
    const { table, cutoffs } = this.#disk ?? {};
    if (cutoffs !== undefined) this.#cutOff(cutoffs);
    if (table !== undefined) this.tables.replace(table.table, table.position);
  }

  async #follow(): Promise<void> {
    const { store, clock, log } = this.#settings;
    await followStore({
      store,
      clock,
      log: log.child({ part: 'follow' }),
      cutoffs: this.#cutoffs,
      onCutoffs: (known) => this.#cutOff(known),
      onTable: (table, position) => this.tables.replace(table, position),
      onChanges: (changes, table, position) => this.tables.patch(changes, table, position),
      onAway: () => this.#listeners.begin(),
      signal: this.#following.signal,
    });
  }

  #cutOff(known: KnownCutoffs): void {
    this.#cutoffs = known;
    // Workers first: what arrives while its listener is being closed is refused there.
    this.#pool.post({ kind: 'cutoffs', cutoffs: known.cutoffs, now: this.#settings.clock.now() });
    this.#listeners.cutOff(known.cutoffs);
    this.#cutoffMarks.push({ mark: this.#pool.mark(), sequence: known.sequence });
    this.#listeners.begin();
  }

  #judge(conflict: string | undefined): void {
    const { log } = this.#settings;
    if (conflict !== undefined && conflict !== this.#conflict) log.error({ conflict }, 'nothing is served');
    if (conflict === undefined && this.#conflict !== undefined) log.info('this proxy serves its node now');
    this.#conflict = conflict;
    this.#listeners.block(conflict);
  }

  #reached(): void {
    const { reached } = this.#pool;
    this.tables.reached(reached);
    const done = this.#cutoffMarks.filter(({ mark }) => mark <= reached);
    this.#cutoffSequence = done.at(-1)?.sequence ?? this.#cutoffSequence;
    this.#cutoffMarks = this.#cutoffMarks.slice(done.length);
    this.#changed();
  }

  #changed(): void {
    this.#heart.trigger();
    if (this.tables.applied !== null && this.#listeners.isSettled) this.#ready.resolve();
  }

  #heartbeat(): Heartbeat | undefined {
    const { life } = this.#flusher;
    return life === undefined ? undefined : { ...this.#says(), life };
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
