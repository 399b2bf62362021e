// The state of each listener, and the set of wanted listeners that are not settled yet. The set is kept up to date with
// each change, because it is read after every answer of every worker.
import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { ListenerConfig } from '../../worker/messages.ts';

export class ListenerStates {
  readonly #listeners: Matcher['listeners'];
  readonly #states = new Map<ListenerKey, ListenerState>();
  readonly #unsettled = new Set<ListenerKey>();

  constructor(listeners: Matcher['listeners']) {
    this.#listeners = listeners;
  }

  get all(): ReadonlyMap<ListenerKey, ListenerState> {
    return this.#states;
  }

  get(key: ListenerKey): ListenerState | undefined {
    return this.#states.get(key);
  }

  set(key: ListenerKey, state: ListenerState): void {
    this.#states.set(key, state);
    this.updateSettled(key);
  }

  delete(key: ListenerKey): void {
    this.#states.delete(key);
    this.updateSettled(key);
  }

  /**
   * Updates whether the listener is settled. To be called when its route was added or removed, or a worker has
   * answered.
   */
  updateSettled(key: ListenerKey): void {
    if (this.#listeners.has(key) && !isSettled(this.#states.get(key))) this.#unsettled.add(key);
    else this.#unsettled.delete(key);
  }

  /** Whether each wanted listener is open, allocated or failed. */
  get areSettled(): boolean {
    return this.#unsettled.size === 0;
  }
}

function isSettled(state: ListenerState | undefined): boolean {
  return state?.kind === 'open' ? state.opening.isConfirmed : state?.kind === 'allocated' || state?.kind === 'failed';
}

/** One attempt to open a listener in all workers, and the answers of the workers. */
export interface ListenerOpening {
  readonly listener: ListenerConfig;
  readonly pendingWorkers: Set<number>;
  readonly listeningWorkers: Set<number>;
  /**
   * Whether all workers have answered and at least one worker listens. The address may be published as soon as this is
   * true.
   */
  isConfirmed: boolean;
  /** The tenant whose Service has the listener for itself; null for a shared listener. */
  readonly tenant: string | null;
  readonly onSettled: () => void;
}

export type ListenerState =
  | { readonly kind: 'open'; readonly opening: ListenerOpening }
  /**
   * The Service owns the port, but no worker listens. The port is probed again at `checkAt` (monotonic ms), because
   * another process may take it.
   */
  | { readonly kind: 'allocated'; readonly checkAt: number }
  /**
   * The port is being probed. `error` is the error of the previous attempt to open the listener; null if that attempt
   * did not fail.
   */
  | { readonly kind: 'busy'; readonly error: string | null }
  | { readonly kind: 'failed'; readonly retryAt: number; readonly error: string };

export type ListenerMode =
  | { readonly kind: 'serving' }
  /** The predecessor listens on `predecessorListeners`, and is about to close them. */
  | { readonly kind: 'joining'; readonly predecessorListeners: ReadonlySet<ListenerKey> }
  /** A successor is opening its listeners. Until the takeover ends, this proxy opens and closes no listener. */
  | { readonly kind: 'frozen' }
  /** No listener is open, because another proxy serves this node. */
  | { readonly kind: 'blocked'; readonly reason: string }
  /** No listener is open or reported, because the proxy drains or has handed over its node. */
  | { readonly kind: 'silent' };
