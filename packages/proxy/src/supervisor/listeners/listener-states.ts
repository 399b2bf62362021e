import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import type { ListenerConfig } from '../../worker/messages.ts';

// What each listener has become, and which of those that are wanted have not become anything yet: kept up with every change,
// because it is asked after every answer of every worker.
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
  return state?.kind === 'open' ? state.opening.isConfirmed : state?.kind === 'allocated' || state?.kind === 'failed';
}

/** One door, and which workers have opened it. */
export interface ListenerOpening {
  readonly listener: ListenerConfig;
  readonly pendingWorkers: Set<number>;
  readonly listeningWorkers: Set<number>;
  /** All who were asked have answered once: from here on the address may be published. */
  isConfirmed: boolean;
  readonly onSettled: () => void;
}

/** What a listener has become. */
export type ListenerState =
  | { readonly kind: 'open'; readonly opening: ListenerOpening }
  /** Looked at again at `checkAt` (of a clock that never jumps): somebody else may have taken the port meanwhile. */
  | { readonly kind: 'allocated'; readonly checkAt: number }
  /** Somebody looks whether the port is free. `error`: what was found the last time; else null. */
  | { readonly kind: 'busy'; readonly error: string | null }
  | { readonly kind: 'failed'; readonly retryAt: number; readonly error: string };

/** What may be opened at all. */
export type ListenerMode =
  | { readonly kind: 'serving' }
  /** Another proxy listens where it says, and is about to close. */
  | { readonly kind: 'joining'; readonly predecessorListeners: ReadonlySet<ListenerKey> }
  /** A successor is opening its listeners beside ours: nothing of ours changes meanwhile. */
  | { readonly kind: 'frozen' }
  /** Nothing is open: another proxy serves this node. */
  | { readonly kind: 'blocked'; readonly reason: string }
  /** Nothing is open, and nothing is said: a drain, or a proxy that has handed over. */
  | { readonly kind: 'silent' };
