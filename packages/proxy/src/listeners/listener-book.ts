// The listeners of a proxy: plans, does, and reports. Everything that takes time ends in another look at the plan, so
// that the sockets come to what is wanted whatever changes meanwhile. What an answer means depends on the state of its listener, and all
// of that is here, which is why the file is long.
import {
  type Cutoff,
  type ListenerEntry,
  type ListenerKey,
  type ListenerReport,
  listenerKeyOf,
  type Matcher,
  type Route,
  type RouteKey,
} from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { SocketAddress } from '../tcp/transport.ts';
import type { Door, Order } from '../worker/messages.ts';
import { bindError } from './bind-error.ts';
import { Doors, type DoorsOptions } from './doors.ts';
import { HeldPorts } from './held-ports.ts';
import { ReportList, type Said, saidOf } from './listener-report.ts';
import { ListenerStates } from './listener-states.ts';
import type { Mode } from './mode.ts';
import type { ListenerState, Opening } from './opening.ts';
import { isServing, planListeners } from './plan-listeners.ts';
import { PortChecks, type Probe, type ProbeAt } from './port-checks.ts';
import { PutOff, type PutOffOptions } from './put-off.ts';
import { Retries } from './retries.ts';

export interface ListenerBookOptions extends DoorsOptions, PutOffOptions {
  readonly matcher: Matcher;
  readonly probe: Probe;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Why nobody could be served by this route although its port is open; null: nothing. */
  readonly faultOf: (route: Route) => string | null;
  /** A report has changed. */
  readonly onChange: () => void;
}

export class ListenerBook {
  readonly #options: ListenerBookOptions;
  readonly #checks: PortChecks;
  readonly #states: ListenerStates;
  readonly #held: HeldPorts;
  readonly #retries: Retries;
  readonly #doors: Doors;
  readonly #putOff: PutOff;
  readonly #reports = new ReportList();
  /** To be looked at once more: what is wanted may have changed while their ports were probed. */
  #opened: ListenerKey[] = [];
  #cutoffs: readonly Cutoff[] = [];
  /** As the lock of the node has it. */
  #mode: Mode = { kind: 'serving' };
  #hasBegun = false;
  #isClosed = false;

  constructor(options: ListenerBookOptions) {
    this.#options = options;
    this.#states = new ListenerStates(options.matcher.listeners);
    this.#checks = new PortChecks(options.probe);
    this.#retries = new Retries(options.clock);
    this.#doors = new Doors(options);
    this.#putOff = new PutOff(options);
    this.#held = new HeldPorts({
      ...options,
      states: this.#states,
      checks: this.#checks,
      isStillClosing: (key) => this.#doors.isStillClosing(key),
      onTaken: (key, at, code) => this.#fail(key, at, code),
    });
  }

  /** Nothing is opened before: the cut-offs must be known first, or a suspended Service would serve at each start. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.settle();
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  enter(mode: Mode): void {
    const before = this.#mode;
    this.#mode = mode;
    const isSame = mode.kind === 'blocked' && before.kind === 'blocked' && mode.reason === before.reason;
    if (isSame || this.#isClosed) return;
    if (mode.kind === 'blocked' || mode.kind === 'silent') this.#closeAll();
    else this.settle();
    this.#options.onChange();
  }

  cutOff(cutoffs: readonly Cutoff[]): void {
    this.#cutoffs = cutoffs;
    this.settle();
  }

  /** For good: a drain. */
  close(): void {
    this.#isClosed = true;
    this.#closeAll();
    this.#options.onChange();
  }

  /** Brings the sockets of these listeners, or of those of these routes, by default of all, to what the plan says. */
  settle(changed?: readonly (ListenerKey | RouteKey)[]): void {
    if (!this.#hasBegun || this.#isClosed) return;
    const keys = this.#putOff.due(changed?.map(listenerKeyOf) ?? this.#all());
    for (const key of keys) this.#states.judge(key);
    if (this.#mode.kind !== 'serving' && this.#mode.kind !== 'beside') return;
    const { matcher, clock } = this.#options;
    const steps = planListeners({
      matcher,
      cutoffs: this.#cutoffs,
      present: this.#states.all,
      now: clock.now(),
      monotonic: clock.monotonic(),
      keys,
    });
    const openings = steps.flatMap((step) => (step.kind === 'open' ? [this.#open(step.key, step.at)] : []));
    for (const step of steps) if (step.kind === 'hold') void this.#hold(step.key, step.at);
    const closing = steps.filter((step) => step.kind === 'close');
    if (openings.length === 0) for (const step of closing) this.#close(step.key);
    else void Promise.all(openings).then(() => this.settle(closing.map((step) => step.key)));
    if (steps.some((step) => step.kind !== 'keep')) this.#options.onChange();
  }

  /** Once a second: what failed is tried again when its time has come. */
  retry(): void {
    this.#doors.forgetClosed();
    const failed: ListenerKey[] = [];
    for (const [key, state] of this.#states.all) if (state.kind === 'failed') failed.push(key);
    if (failed.length > 0) this.settle(failed);
    if (this.#mode.kind === 'serving') this.#held.check();
  }

  /** Doors that workers listen at, and how many do. */
  get open(): readonly { readonly door: Door; readonly workers: number }[] {
    return this.#doors.inUse;
  }

  /** The first of these listeners that is wanted open here and could not be opened, in words. */
  problemAmong(keys: Iterable<ListenerKey>): string | undefined {
    for (const key of keys) {
      const state = this.#states.get(key);
      if (state?.kind === 'failed') return state.error;
    }
    return undefined;
  }

  /** The doors that a new worker must open, too. */
  ordersFor(worker: number): Order[] {
    return this.#doors.ordersFor(worker);
  }

  onListening(worker: number, door: number): void {
    this.#answered(this.#doors.listens(worker, door));
  }

  onListenFailed(_worker: number, door: number, code: string): void {
    const opening = this.#doors.get(door);
    if (opening === undefined) return;
    this.#doors.shut(opening);
    this.#fail(opening.door.key, opening.door, code);
  }

  onWorkerEnd(worker: number): void {
    for (const opening of this.#doors.gone(worker)) this.#answered(opening);
  }

  /** Whether each listener is open, held or failed by now: nothing is under way. */
  get isSettled(): boolean {
    if (!this.#hasBegun) return false;
    if (this.#mode.kind === 'blocked' || this.#mode.kind === 'silent') return true;
    return this.#states.areSettled;
  }

  /** The same list while nothing is said anew: whoever sends it every second need not look through it. */
  reports(): readonly ListenerReport[] {
    const mode = this.#mode;
    if (this.#isClosed || mode.kind === 'silent') return [];
    return this.#reports.renew(this.#options.matcher.routes.values(), (route) =>
      mode.kind === 'blocked' ? { bound: false, listening: false, error: mode.reason } : this.#saidOf(route),
    );
  }

  /** That are wanted or there. */
  *#all(): Iterable<ListenerKey> {
    yield* this.#options.matcher.listeners.keys();
    yield* this.#states.all.keys();
  }

  #saidOf(route: Route): Said {
    const isShared = route.listener.shared === true;
    // It is asked for each of thousands with every heartbeat.
    const key = isShared ? listenerKeyOf(route.key) : route.key;
    const said = saidOf(this.#states.get(key), { isStillClosing: this.#doors.isStillClosing(key) });
    const error = said.bound ? this.#options.faultOf(route) : null;
    if (error !== null) return { bound: false, listening: false, error };
    if (!isShared) return said;
    // Open for the others: its own clients may not be let in all the same.
    return { ...said, listening: said.listening && isServing(route, this.#cutoffs, this.#options.clock.now()) };
  }

  async #open(key: ListenerKey, at: ListenerEntry): Promise<void> {
    if (!(await this.#isFree(key, at))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#states.set(key, { kind: 'open', opening: this.#doors.open(key, at, resolve) });
    this.#settleSoon(key);
    await promise;
  }

  /** With all others whose ports were found free at the same time. */
  #settleSoon(key: ListenerKey): void {
    if (this.#opened.push(key) > 1) return;
    queueMicrotask(() => {
      const keys = this.#opened;
      this.#opened = [];
      this.settle(keys);
    });
  }

  async #hold(key: ListenerKey, at: ListenerEntry): Promise<void> {
    const state = this.#states.get(key);
    if (state?.kind === 'open') {
      // Our own sockets were there until now: no need to ask whether the port is free.
      this.#doors.shut(state.opening);
      this.#held.hold(key);
      return;
    }
    if (!(await this.#isFree(key, at))) return;
    this.#held.hold(key);
    this.#retries.forget(key);
    this.#options.onChange();
    this.settle([key]);
  }

  /** False also when nobody wants to know any more. */
  async #isFree(key: ListenerKey, at: ProbeAt): Promise<boolean> {
    const before = this.#states.get(key);
    const busy: ListenerState = { kind: 'busy', error: before?.kind === 'failed' ? before.error : null };
    this.#states.set(key, busy);
    // Where we would find ourselves, or the one that hands over to us, nobody else can be.
    const isOurs = this.#doors.isStillClosing(key) || (this.#mode.kind === 'beside' && this.#mode.others.has(key));
    const code = isOurs ? undefined : await this.#checks.ask(key, at);
    if (this.#states.get(key) !== busy) return false;
    if (code === undefined) return true;
    this.#fail(key, at, code);
    return false;
  }

  #fail(key: ListenerKey, at: SocketAddress, code: string): void {
    this.#states.set(key, { kind: 'failed', retryAt: this.#retries.after(key), error: bindError(code, at) });
    this.#options.onChange();
    this.settle([key]);
  }

  #close(key: ListenerKey): void {
    const state = this.#states.get(key);
    if (state?.kind === 'open') this.#doors.shut(state.opening);
    this.#states.delete(key);
    this.#retries.forget(key);
  }

  #closeAll(): void {
    for (const key of [...this.#states.all.keys()]) this.#close(key);
  }

  #answered(opening: Opening | undefined): void {
    if (opening === undefined) return;
    this.#states.judge(opening.door.key);
    if (opening.isConfirmed) this.#retries.forget(opening.door.key);
    this.#options.onChange();
  }
}
