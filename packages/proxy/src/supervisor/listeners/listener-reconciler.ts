// The listeners of a proxy: plans, does, and reports. Everything that takes time ends in another look at the plan, so
// that the sockets come to what is wanted whatever changes meanwhile. What an answer means depends on the state of its listener, and all
// of that is here, which is why the file is long.
import {
  type ListenerEntry,
  type ListenerKey,
  type ListenerReport,
  listenerKeyOfRoute,
  type Matcher,
  type Route,
  type RouteKey,
  type Suspension,
} from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import type { ListenerConfig, WorkerCommand } from '../../worker/messages.ts';
import { AllocatedPorts } from './allocated-ports.ts';
import { ListenerOpenings, type ListenerOpeningsOptions } from './listener-openings.ts';
import { type BindResult, bindErrorMessage, bindResultFor, ListenerReports } from './listener-report.ts';
import { BindRetries, DeferredListeners, type DeferredListenersOptions } from './listener-scheduling.ts';
import type { ListenerMode, ListenerOpening, ListenerState } from './listener-states.ts';
import { ListenerStates } from './listener-states.ts';
import { isServing, planListeners } from './plan-listeners.ts';
import { type PortProbe, PortProbes, type ProbeAddress } from './port-probe.ts';

export interface ListenerReconcilerOptions extends ListenerOpeningsOptions, DeferredListenersOptions {
  readonly matcher: Matcher;
  readonly probe: PortProbe;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Why nobody could be served by this route although its port is open; null: nothing. */
  readonly faultOf: (route: Route) => string | null;
  /** A report has changed. */
  readonly onChange: () => void;
}

export class ListenerReconciler {
  readonly #options: ListenerReconcilerOptions;
  readonly #probes: PortProbes;
  readonly #states: ListenerStates;
  readonly #allocated: AllocatedPorts;
  readonly #retries: BindRetries;
  readonly #openings: ListenerOpenings;
  readonly #deferred: DeferredListeners;
  readonly #reports = new ListenerReports();
  /** To be looked at once more: what is wanted may have changed while their ports were probed. */
  #recentlyOpened: ListenerKey[] = [];
  #suspensions: readonly Suspension[] = [];
  /** As the lock of the node has it. */
  #mode: ListenerMode = { kind: 'serving' };
  #hasStarted = false;
  #isClosed = false;

  constructor(options: ListenerReconcilerOptions) {
    this.#options = options;
    this.#states = new ListenerStates(options.matcher.listeners);
    this.#probes = new PortProbes(options.probe);
    this.#retries = new BindRetries(options.clock);
    this.#openings = new ListenerOpenings(options);
    this.#deferred = new DeferredListeners(options);
    this.#allocated = new AllocatedPorts({
      ...options,
      states: this.#states,
      probes: this.#probes,
      isStillClosing: (key) => this.#openings.isStillClosing(key),
      onTaken: (key, at, code) => this.#fail(key, at, code),
    });
  }

  /** Nothing is opened before: the cut-offs must be known first, or a suspended Service would serve at each start. */
  start(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.reconcile();
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  setMode(mode: ListenerMode): void {
    const before = this.#mode;
    this.#mode = mode;
    const isSame = mode.kind === 'blocked' && before.kind === 'blocked' && mode.reason === before.reason;
    if (isSame || this.#isClosed) return;
    if (mode.kind === 'blocked' || mode.kind === 'silent') this.#closeAll();
    else this.reconcile();
    this.#options.onChange();
  }

  setSuspensions(cutoffs: readonly Suspension[]): void {
    this.#suspensions = cutoffs;
    this.reconcile();
  }

  /** For good: a drain. */
  close(): void {
    this.#isClosed = true;
    this.#closeAll();
    this.#options.onChange();
  }

  /** Brings the sockets of these listeners, or of those of these routes, by default of all, to what the plan says. */
  reconcile(changed?: readonly (ListenerKey | RouteKey)[]): void {
    if (!this.#hasStarted || this.#isClosed) return;
    const keys = this.#deferred.due(changed?.map(listenerKeyOfRoute) ?? this.#allKeys());
    for (const key of keys) this.#states.updateSettled(key);
    if (this.#mode.kind !== 'serving' && this.#mode.kind !== 'joining') return;
    const { matcher, clock } = this.#options;
    const steps = planListeners({
      matcher,
      cutoffs: this.#suspensions,
      present: this.#states.all,
      now: clock.now(),
      monotonic: clock.monotonic(),
      keys,
    });
    const openings = steps.flatMap((step) => (step.kind === 'open' ? [this.#open(step.key, step.at)] : []));
    for (const step of steps) if (step.kind === 'allocate') void this.#allocate(step.key, step.at);
    const closing = steps.filter((step) => step.kind === 'close');
    if (openings.length === 0) for (const step of closing) this.#close(step.key);
    else void Promise.all(openings).then(() => this.reconcile(closing.map((step) => step.key)));
    if (steps.some((step) => step.kind !== 'keep')) this.#options.onChange();
  }

  /** Once a second: what failed is tried again when its time has come. */
  retry(): void {
    this.#openings.forgetClosed();
    const failed: ListenerKey[] = [];
    for (const [key, state] of this.#states.all) if (state.kind === 'failed') failed.push(key);
    if (failed.length > 0) this.reconcile(failed);
    if (this.#mode.kind === 'serving') this.#allocated.check();
  }

  /** Doors that workers listen at, and how many do. */
  get open(): readonly { readonly listener: ListenerConfig; readonly workers: number }[] {
    return this.#openings.listening;
  }

  /** The first of these listeners that is wanted open here and could not be opened, in words. */
  firstError(keys: Iterable<ListenerKey>): string | undefined {
    for (const key of keys) {
      const state = this.#states.get(key);
      if (state?.kind === 'failed') return state.error;
    }
    return undefined;
  }

  /** The doors that a new worker must open, too. */
  commandsForNewWorker(worker: number): WorkerCommand[] {
    return this.#openings.commandsForNewWorker(worker);
  }

  onListening(worker: number, door: number): void {
    this.#onOpeningAnswered(this.#openings.recordListening(worker, door));
  }

  onListenFailed(_worker: number, door: number, code: string): void {
    const opening = this.#openings.get(door);
    if (opening === undefined) return;
    this.#openings.close(opening);
    this.#fail(opening.listener.key, opening.listener, code);
  }

  onWorkerEnd(worker: number): void {
    for (const opening of this.#openings.removeWorker(worker)) this.#onOpeningAnswered(opening);
  }

  /** Whether each listener is open, held or failed by now: nothing is under way. */
  get isSettled(): boolean {
    if (!this.#hasStarted) return false;
    if (this.#mode.kind === 'blocked' || this.#mode.kind === 'silent') return true;
    return this.#states.areSettled;
  }

  /** The same list while nothing is said anew: whoever sends it every second need not look through it. */
  reports(): readonly ListenerReport[] {
    const mode = this.#mode;
    if (this.#isClosed || mode.kind === 'silent') return [];
    return this.#reports.update(this.#options.matcher.routes.values(), (route) =>
      mode.kind === 'blocked' ? { bound: false, listening: false, error: mode.reason } : this.#bindResultFor(route),
    );
  }

  /** That are wanted or there. */
  *#allKeys(): Iterable<ListenerKey> {
    yield* this.#options.matcher.listeners.keys();
    yield* this.#states.all.keys();
  }

  #bindResultFor(route: Route): BindResult {
    const isShared = route.listener.shared === true;
    // It is asked for each of thousands with every heartbeat.
    const key = isShared ? listenerKeyOfRoute(route.key) : route.key;
    const said = bindResultFor(this.#states.get(key), { isStillClosing: this.#openings.isStillClosing(key) });
    const error = said.bound ? this.#options.faultOf(route) : null;
    if (error !== null) return { bound: false, listening: false, error };
    if (!isShared) return said;
    // Open for the others: its own clients may not be let in all the same.
    return { ...said, listening: said.listening && isServing(route, this.#suspensions, this.#options.clock.now()) };
  }

  async #open(key: ListenerKey, at: ListenerEntry): Promise<void> {
    if (!(await this.#isFree(key, at))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#states.set(key, { kind: 'open', opening: this.#openings.open(key, at, resolve) });
    this.#reconcileSoon(key);
    await promise;
  }

  /** With all others whose ports were found free at the same time. */
  #reconcileSoon(key: ListenerKey): void {
    if (this.#recentlyOpened.push(key) > 1) return;
    queueMicrotask(() => {
      const keys = this.#recentlyOpened;
      this.#recentlyOpened = [];
      this.reconcile(keys);
    });
  }

  async #allocate(key: ListenerKey, at: ListenerEntry): Promise<void> {
    const state = this.#states.get(key);
    if (state?.kind === 'open') {
      // Our own sockets were there until now: no need to ask whether the port is free.
      this.#openings.close(state.opening);
      this.#allocated.markAllocated(key);
      return;
    }
    if (!(await this.#isFree(key, at))) return;
    this.#allocated.markAllocated(key);
    this.#retries.forget(key);
    this.#options.onChange();
    this.reconcile([key]);
  }

  /** False also when nobody wants to know any more. */
  async #isFree(key: ListenerKey, at: ProbeAddress): Promise<boolean> {
    const before = this.#states.get(key);
    const busy: ListenerState = { kind: 'busy', error: before?.kind === 'failed' ? before.error : null };
    this.#states.set(key, busy);
    // Where we would find ourselves, or the one that hands over to us, nobody else can be.
    const isOurs =
      this.#openings.isStillClosing(key) || (this.#mode.kind === 'joining' && this.#mode.predecessorListeners.has(key));
    const code = isOurs ? undefined : await this.#probes.probe(key, at);
    if (this.#states.get(key) !== busy) return false;
    if (code === undefined) return true;
    this.#fail(key, at, code);
    return false;
  }

  #fail(key: ListenerKey, at: SocketAddress, code: string): void {
    this.#states.set(key, {
      kind: 'failed',
      retryAt: this.#retries.nextRetryAt(key),
      error: bindErrorMessage(code, at),
    });
    this.#options.onChange();
    this.reconcile([key]);
  }

  #close(key: ListenerKey): void {
    const state = this.#states.get(key);
    if (state?.kind === 'open') this.#openings.close(state.opening);
    this.#states.delete(key);
    this.#retries.forget(key);
  }

  #closeAll(): void {
    for (const key of [...this.#states.all.keys()]) this.#close(key);
  }

  #onOpeningAnswered(opening: ListenerOpening | undefined): void {
    if (opening === undefined) return;
    this.#states.updateSettled(opening.listener.key);
    if (opening.isConfirmed) this.#retries.forget(opening.listener.key);
    this.#options.onChange();
  }
}
