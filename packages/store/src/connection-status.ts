import type { ConnectionState } from './contract.ts';
import type { StoreError } from './errors.ts';

/** The connection state of a store, and the listeners for changes of this state. After `closed` the state never changes. */
export class ConnectionStatus {
  #state: ConnectionState;
  #error: StoreError | undefined;
  readonly #listeners = new Set<(state: ConnectionState) => void>();

  constructor(initial: ConnectionState) {
    this.#state = initial;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get error(): StoreError | undefined {
    return this.#error;
  }

  set(state: ConnectionState, error: StoreError | undefined): void {
    if (this.#state === 'closed') return;
    this.#error = error;
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of [...this.#listeners]) listener(state);
  }

  /** Calls `listener` at each change of the state; returns a function that removes the listener. */
  onChange(listener: (state: ConnectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
