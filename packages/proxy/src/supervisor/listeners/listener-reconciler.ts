// Opens and closes the listeners of a proxy as planned, and reports their state. Each asynchronous step (probe, open)
// ends with another `reconcile`, so that the sockets match the plan even if the plan changed during the step.
import {
  type ListenerEntry,
  type ListenerKey,
  type ListenerReport,
  listenerKeyOfRoute,
  type Matcher,
  type Route,
  type RouteKey,
  relaysHttp,
  type Suspension,
} from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { SocketAddress } from '../../transport/tcp-transport.ts';
import type { ListenerConfig, WorkerCommand } from '../../worker/messages.ts';
import { AllocatedPorts } from './allocated-ports.ts';
import { ListenerOpenings, type ListenerOpeningsOptions } from './listener-openings.ts';
import {
  type BindResult,
  bindErrorMessage,
  bindResultFor,
  descriptorShortageMessage,
  ListenerReports,
} from './listener-report.ts';
import { BindRetries, DeferredListeners, type DeferredListenersOptions } from './listener-scheduling.ts';
import type { ListenerMode, ListenerOpening, ListenerState } from './listener-states.ts';
import { ListenerStates } from './listener-states.ts';
import { isServing, planListeners } from './plan-listeners.ts';
import { type PortProbe, PortProbes, type ProbeAddress } from './port-probe.ts';

export interface ListenerReconcilerOptions extends ListenerOpeningsOptions, DeferredListenersOptions {
  readonly matcher: Matcher;
  readonly probe: PortProbe;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Returns why no client of this route can be served although the port is open, or null if clients can be served. */
  readonly faultOf: (route: Route) => string | null;
  /** Called when a report may have changed. */
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
  /** Listeners to be reconciled again, because the plan may have changed while their ports were probed. */
  #recentlyOpened: ListenerKey[] = [];
  #suspensions: readonly Suspension[] = [];
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
      onTaken: (key, address, code) => this.#fail(key, address, code),
    });
  }

  /**
   * Opens the listeners. To be called once the supervisor may open them (`#mayOpenListeners`).
   */
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

  setSuspensions(suspensions: readonly Suspension[]): void {
    this.#suspensions = suspensions;
    this.reconcile();
  }

  /** Closes all listeners for good, at the start of a drain. */
  close(): void {
    this.#isClosed = true;
    this.#closeAll();
    this.#options.onChange();
  }

  /**
   * Opens and closes listeners as the table requires. Considers only the listeners that `changed` names, each by its own
   * key or by the key of one of its routes; by default all listeners.
   */
  reconcile(changed?: readonly (ListenerKey | RouteKey)[]): void {
    if (!this.#hasStarted || this.#isClosed) return;
    const keys = this.#deferred.due(changed?.map(listenerKeyOfRoute) ?? this.#allKeys());
    for (const key of keys) this.#states.updateSettled(key);
    if (this.#mode.kind !== 'serving' && this.#mode.kind !== 'joining') return;
    const { matcher, clock } = this.#options;
    const steps = planListeners({
      matcher,
      suspensions: this.#suspensions,
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

  /** Retries failed listeners and probes allocated ports if they are due. To be called once a second. */
  retry(): void {
    this.#openings.forgetClosed();
    const failed: ListenerKey[] = [];
    for (const [key, state] of this.#states.all) if (state.kind === 'failed') failed.push(key);
    if (failed.length > 0) this.reconcile(failed);
    if (this.#mode.kind === 'serving') this.#allocated.check();
  }

  /** The listeners that are open, with the number of workers that listen. */
  get open(): readonly { readonly listener: ListenerConfig; readonly workers: number }[] {
    return this.#openings.listening;
  }

  /** Returns the error of the first listener in `keys` that has failed. */
  firstError(keys: Iterable<ListenerKey>): string | undefined {
    for (const key of keys) {
      const state = this.#states.get(key);
      if (state?.kind === 'failed') return state.error;
    }
    return undefined;
  }

  commandsForNewWorker(worker: number): WorkerCommand[] {
    return this.#openings.commandsForNewWorker(worker);
  }

  onListening(worker: number, listenerId: number): void {
    this.#onOpeningAnswered(this.#openings.recordListening(worker, listenerId));
  }

  /** Closes the listener in all workers, because one worker failed to listen. `code` is an errno name. */
  onListenFailed(listenerId: number, code: string): void {
    const opening = this.#openings.get(listenerId);
    if (opening === undefined) return;
    this.#openings.close(opening);
    this.#fail(opening.listener.key, opening.listener, code);
  }

  onWorkerEnd(worker: number): void {
    for (const opening of this.#openings.removeWorker(worker)) this.#onOpeningAnswered(opening);
  }

  /** Whether each wanted listener is open, allocated or failed. */
  get isSettled(): boolean {
    if (!this.#hasStarted) return false;
    if (this.#mode.kind === 'blocked' || this.#mode.kind === 'silent') return true;
    return this.#states.areSettled;
  }

  /**
   * Returns the reports of all listeners. Returns the same list object as long as no report changes, so that callers
   * can compare lists by identity.
   */
  reports(): readonly ListenerReport[] {
    const mode = this.#mode;
    if (this.#isClosed || mode.kind === 'silent') return [];
    return this.#reports.update(this.#options.matcher.routes.values(), (route) =>
      mode.kind === 'blocked' ? { bound: false, listening: false, error: mode.reason } : this.#bindResultFor(route),
    );
  }

  *#allKeys(): Iterable<ListenerKey> {
    yield* this.#options.matcher.listeners.keys();
    yield* this.#states.all.keys();
  }

  #bindResultFor(route: Route): BindResult {
    const isShared = route.listener.shared === true;
    // A listener that is not shared has the same key as its route. Using the route's key avoids parsing thousands of
    // keys for every heartbeat.
    const key = isShared ? listenerKeyOfRoute(route.key) : route.key;
    const result = bindResultFor(this.#states.get(key), { isStillClosing: this.#openings.isStillClosing(key) });
    const error = result.bound ? this.#options.faultOf(route) : null;
    if (error !== null) return { bound: false, listening: false, error };
    if (!isShared && !relaysHttp(route)) return result;
    // A shared listener may be open for other Services while this Service is suspended or has no endpoint. A listener for
    // HTTP is open while the Service is suspended.
    return { ...result, listening: result.listening && isServing(route, this.#suspensions, this.#options.clock.now()) };
  }

  async #open(key: ListenerKey, at: ListenerEntry): Promise<void> {
    if (!(await this.#isFree(key, at))) return;
    const tenant = this.#options.matcher.listeners.get(key)?.exclusive?.service.tenant ?? null;
    const shortage = this.#openings.shortageFor(tenant);
    if (shortage !== undefined) return this.#setFailed(key, descriptorShortageMessage(shortage, { tenant, at }));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#states.set(key, { kind: 'open', opening: this.#openings.open(key, at, { tenant, onSettled: resolve }) });
    this.#reconcileSoon(key);
    await promise;
  }

  /** Reconciles the listener together with all listeners whose ports were found free in this turn of the event loop. */
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
      // The port needs no probe, because until now only this proxy listened on it.
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

  /**
   * Probes the port of a listener. Resolves to false if the port is taken, or if the state of the listener changed
   * during the probe.
   */
  async #isFree(key: ListenerKey, at: ProbeAddress): Promise<boolean> {
    const before = this.#states.get(key);
    const busy: ListenerState = { kind: 'busy', error: before?.kind === 'failed' ? before.error : null };
    this.#states.set(key, busy);
    // A port that this proxy is closing, or that its predecessor has open, is not probed, because the probe would find
    // the socket of the proxy or its predecessor. No other process can listen on such a port.
    const isOwn =
      this.#openings.isStillClosing(key) || (this.#mode.kind === 'joining' && this.#mode.predecessorListeners.has(key));
    const code = isOwn ? undefined : await this.#probes.probe(key, at);
    if (this.#states.get(key) !== busy) return false;
    if (code === undefined) return true;
    this.#fail(key, at, code);
    return false;
  }

  #fail(key: ListenerKey, at: SocketAddress, code: string): void {
    this.#setFailed(key, bindErrorMessage(code, at));
  }

  #setFailed(key: ListenerKey, error: string): void {
    this.#states.set(key, { kind: 'failed', retryAt: this.#retries.nextRetryAt(key), error });
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
