import { ConnectionStatus } from '../connection-status.ts';
import type { ConnectionState } from '../contract.ts';
import { StoreError } from '../errors.ts';

/** What every call passes first. Memory is away only when a test says so, or after `close`. */
export class MemoryConnection {
  readonly status: ConnectionStatus = new ConnectionStatus('ready');
  /** Rings at every change that somebody may wait for. */
  readonly changes: ChangeNotifier = new ChangeNotifier();

  /** Throws AWAY unless the store is there. */
  assertReady(): void {
    const { state } = this.status;
    if (state === 'ready') return;
    throw new StoreError('AWAY', state === 'closed' ? 'the store is closed' : 'the store is away');
  }

  setState(state: ConnectionState): void {
    this.status.set(state, state === 'away' ? new StoreError('AWAY', 'the store is away') : undefined);
    this.changes.notify();
  }
}

/** Wakes everybody who waits. It carries nothing: who is woken looks at the state. */
export class ChangeNotifier {
  readonly #waiters = new Set<() => void>();

  notify(): void {
    const sleepers = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of sleepers) wake();
  }

  /** Resolves at the next ring, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = (): void => {
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
