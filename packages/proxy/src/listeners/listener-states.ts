// What each listener has become, and which of those that are wanted have not become anything yet: kept up with every change,
// because it is asked after every answer of every worker.
import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { ListenerState } from './opening.ts';

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

  /** Its route has come or gone, or its opening was answered. */
  updateSettled(key: ListenerKey): void {
    if (this.#listeners.has(key) && !isSettled(this.#states.get(key))) this.#unsettled.add(key);
    else this.#unsettled.delete(key);
  }

  /** Whether each listener that is wanted is open, held or failed by now. */
  get areSettled(): boolean {
    return this.#unsettled.size === 0;
  }
}

function isSettled(state: ListenerState | undefined): boolean {
  return state?.kind === 'open' ? state.opening.isConfirmed : state?.kind === 'held' || state?.kind === 'failed';
}
