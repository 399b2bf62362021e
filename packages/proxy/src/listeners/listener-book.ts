// The listeners of a proxy: plans, does, and reports. Everything that takes time ends in another look at the plan, so
// that the sockets come to what is wanted whatever changes meanwhile.
import type { Cutoff, ListenerKey, ListenerReport, Matcher, Route } from '@weir/model';
import { backoffMs, type Clock } from '@weir/runtime';
import type { SocketAddress } from '../tcp/transport.ts';
import type { Door, Order } from '../worker/messages.ts';
import { bindError } from './bind-error.ts';
import type { ListenerState, Opening } from './opening.ts';
import { type ListenerStep, planListeners } from './plan-listeners.ts';
import { PortChecks, type Probe, type ProbeAt } from './port-checks.ts';

const RETRY = { minMs: 1_000, maxMs: 15_000 };

const CHECK_HELD_MS = 10_000;
/** A check costs the kernel a bind: so many held ports are looked at in one second. */
const CHECKS_EACH_TIME = 100;

/** What may be opened at all. */
type Mode =
  | { readonly kind: 'serving' }
  /** Another proxy listens where it says, and is about to close. */
  | { readonly kind: 'beside'; readonly others: ReadonlySet<ListenerKey> }
  /** A successor is opening its listeners beside ours: nothing of ours changes meanwhile. */
  | { readonly kind: 'frozen' }
  /** Nothing is open: another proxy serves this node. */
  | { readonly kind: 'blocked'; readonly reason: string }
  /** Nothing is open, and nothing is said: a drain, or a proxy that has handed over. */
  | { readonly kind: 'silent' };

export interface ListenerBookOptions {
  readonly matcher: Matcher;
  readonly probe: Probe;
  /** To all workers. */
  readonly post: (order: Order) => void;
  readonly workers: () => readonly number[];
  /** A mark that `reached` gets to when all workers have followed every order so far. */
  readonly mark: () => number;
  readonly reached: () => number;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** A report has changed. */
  readonly onChange: () => void;
}

export class ListenerBook {
  readonly #options: ListenerBookOptions;
  readonly #checks: PortChecks;
  readonly #states = new Map<ListenerKey, ListenerState>();
  readonly #failures = new Map<ListenerKey, number>();
  readonly #doors = new Map<number, Opening>();
  /** Ports that workers may not have closed yet, by the mark at which they have. */
  readonly #closing = new Map<ListenerKey, number>();
  #cutoffs: readonly Cutoff[] = [];
  #nextDoor = 1;
  /** As the lock of the node has it. */
  #mode: Mode = { kind: 'serving' };
  #hasBegun = false;
  #isClosed = false;

  constructor(options: ListenerBookOptions) {
    this.#options = options;
    this.#checks = new PortChecks(options.probe);
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

  /** Brings the sockets of these listeners, by default of all, to what the plan says. */
  settle(keys?: Iterable<ListenerKey>): void {
    if (!this.#hasBegun || this.#isClosed) return;
    if (this.#mode.kind !== 'serving' && this.#mode.kind !== 'beside') return;
    const { matcher, clock } = this.#options;
    const steps = planListeners({
      matcher,
      cutoffs: this.#cutoffs,
      present: this.#states,
      now: clock.now(),
      monotonic: clock.monotonic(),
      ...(keys === undefined ? {} : { keys }),
    });
    const openings = steps.flatMap((step) => (step.kind === 'open' ? [this.#open(step.key, step.route)] : []));
    for (const step of steps) if (step.kind === 'hold') void this.#hold(step.key, step.route);
    const closing = steps.filter((step) => step.kind === 'close');
    if (openings.length === 0) for (const step of closing) this.#close(step.key);
    else void Promise.all(openings).then(() => this.#settleLater(closing));
    if (steps.some((step) => step.kind !== 'keep')) this.#options.onChange();
  }

  /** Once a second: what failed is tried again when its time has come. */
  retry(): void {
    for (const [key, mark] of this.#closing) if (this.#options.reached() >= mark) this.#closing.delete(key);
    const failed = [...this.#states].flatMap(([key, state]) => (state.kind === 'failed' ? [key] : []));
    if (failed.length > 0) this.settle(failed);
    if (this.#mode.kind === 'serving') this.#checkHeld();
  }

  /** Doors that workers listen at, and how many do. */
  get open(): readonly { readonly door: Door; readonly workers: number }[] {
    return [...this.#doors.values()]
      .filter(({ isConfirmed, listening }) => isConfirmed && listening.size > 0)
      .map(({ door, listening }) => ({ door, workers: listening.size }));
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
    return [...this.#doors.values()].map(({ door, asked }) => {
      asked.add(worker);
      return { kind: 'listen', door };
    });
  }

  onListening(worker: number, door: number): void {
    this.#doors.get(door)?.listening.add(worker);
    this.#answered(worker, door);
  }

  onListenFailed(_worker: number, door: number, code: string): void {
    const opening = this.#doors.get(door);
    if (opening === undefined) return;
    this.#shut(opening);
    this.#fail(opening.door.key, opening.door, code);
  }

  onWorkerEnd(worker: number): void {
    for (const [door, { listening }] of this.#doors) {
      listening.delete(worker);
      this.#answered(worker, door);
    }
  }

  /** Whether each listener is open, held or failed by now: nothing is under way. */
  get isSettled(): boolean {
    if (!this.#hasBegun) return false;
    if (this.#mode.kind === 'blocked' || this.#mode.kind === 'silent') return true;
    return [...this.#options.matcher.routes.values()].every(({ key }) => {
      const state = this.#states.get(key);
      return state?.kind === 'open' ? state.opening.isConfirmed : state?.kind === 'held' || state?.kind === 'failed';
    });
  }

  reports(): ListenerReport[] {
    if (this.#isClosed || this.#mode.kind === 'silent') return [];
    return [...this.#options.matcher.routes.values()].map((route) => ({
      id: route.listener.id,
      service: route.service.uid,
      ...this.#outcomeOf(route),
    }));
  }

  #outcomeOf(route: Route): Pick<ListenerReport, 'bound' | 'listening' | 'error'> {
    const state = this.#states.get(route.key);
    const silent = { bound: false, listening: false, error: null };
    if (this.#mode.kind === 'blocked') return { ...silent, error: this.#mode.reason };
    switch (state?.kind) {
      case 'open': {
        const { isConfirmed, listening } = state.opening;
        return { bound: isConfirmed, listening: isConfirmed && listening.size > 0, error: null };
      }
      case 'held':
        return { ...silent, bound: true, listening: this.#isStillClosing(route.key) };
      case 'failed':
        return { ...silent, error: state.error };
      case 'busy':
      case undefined:
        return silent;
    }
  }

  async #open(key: ListenerKey, { listener }: Route): Promise<void> {
    if (!(await this.#isFree(key, listener))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const { protocol, address, port } = listener;
    const door = { id: this.#nextDoor++, key, protocol, address, port };
    const { post, workers } = this.#options;
    const opening = {
      door,
      asked: new Set(workers()),
      listening: new Set<number>(),
      isConfirmed: false,
      settled: resolve,
    };
    this.#doors.set(door.id, opening);
    this.#states.set(key, { kind: 'open', opening });
    post({ kind: 'listen', door });
    this.settle([key]);
    await promise;
  }

  async #hold(key: ListenerKey, { listener }: Route): Promise<void> {
    const state = this.#states.get(key);
    if (state?.kind === 'open') {
      // Our own sockets were there until now: no need to ask whether the port is free.
      this.#shut(state.opening);
      this.#states.set(key, this.#held());
      return;
    }
    if (!(await this.#isFree(key, listener))) return;
    this.#states.set(key, this.#held());
    this.#failures.delete(key);
    this.#options.onChange();
    this.settle([key]);
  }

  /** False also when nobody wants to know any more. */
  async #isFree(key: ListenerKey, at: ProbeAt): Promise<boolean> {
    const busy: ListenerState = { kind: 'busy' };
    this.#states.set(key, busy);
    // Where we would find ourselves, or the one that hands over to us, nobody else can be.
    const isOurs = this.#isStillClosing(key) || (this.#mode.kind === 'beside' && this.#mode.others.has(key));
    const code = isOurs ? undefined : await this.#checks.ask(key, at);
    if (this.#states.get(key) !== busy) return false;
    if (code === undefined) return true;
    this.#fail(key, at, code);
    return false;
  }

  #held(): ListenerState {
    return { kind: 'held', checkAt: this.#options.clock.monotonic() + CHECK_HELD_MS };
  }

  /** Nothing of ours is at a held port: a foreign process may take it, and then it is not ours to publish. */
  #checkHeld(): void {
    const now = this.#options.clock.monotonic();
    let left = CHECKS_EACH_TIME;
    for (const [key, state] of this.#states) {
      if (left === 0) return;
      const at = this.#options.matcher.routes.get(key)?.listener;
      if (state.kind !== 'held' || state.checkAt > now || at === undefined || this.#isStillClosing(key)) continue;
      left -= 1;
      const checked = this.#held();
      this.#states.set(key, checked);
      void this.#checks.ask(key, at).then((code) => {
        if (code !== undefined && this.#states.get(key) === checked) this.#fail(key, at, code);
      });
    }
  }

  #isStillClosing(key: ListenerKey): boolean {
    return (this.#closing.get(key) ?? 0) > this.#options.reached();
  }

  #fail(key: ListenerKey, at: SocketAddress, code: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const retryAt = this.#options.clock.monotonic() + backoffMs(failures, { ...RETRY, random: Math.random });
    this.#states.set(key, { kind: 'failed', retryAt, error: bindError(code, at) });
    this.#options.onChange();
    this.settle([key]);
  }

  #close(key: ListenerKey): void {
    const state = this.#states.get(key);
    if (state?.kind === 'open') this.#shut(state.opening);
    this.#states.delete(key);
    this.#failures.delete(key);
  }

  #closeAll(): void {
    for (const key of [...this.#states.keys()]) this.#close(key);
  }

  #settleLater(steps: readonly ListenerStep[]): void {
    if (steps.length > 0) this.settle(steps.map((step) => step.key));
  }

  #shut(opening: Opening): void {
    const { post, mark } = this.#options;
    post({ kind: 'unlisten', door: opening.door });
    this.#closing.set(opening.door.key, mark());
    this.#doors.delete(opening.door.id);
    opening.settled();
  }

  #answered(worker: number, door: number): void {
    const opening = this.#doors.get(door);
    if (opening === undefined) return;
    opening.asked.delete(worker);
    if (opening.asked.size > 0) return;
    if (opening.listening.size > 0) {
      opening.isConfirmed = true;
      this.#failures.delete(opening.door.key);
    }
    opening.settled();
    this.#options.onChange();
  }
}
