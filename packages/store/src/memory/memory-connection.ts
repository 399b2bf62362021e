import { ConnectionStatus } from '../connection-status.ts';
import type { ConnectionState } from '../contract.ts';
import { StoreError } from '../errors.ts';

/** The connection state of a memory store. A memory store is unreachable only in tests and after `close`. */
export class MemoryConnection {
  readonly status: ConnectionStatus = new ConnectionStatus('ready');
  /** Notifies followers and watchers of each change that they may wait for. */
  readonly changes: ChangeNotifier = new ChangeNotifier();

  /** Throws AWAY unless the state is `ready`. */
  assertReady(): void {
    const { state } = this.status;
    if (state === 'ready') return;
    throw new StoreError('AWAY', state === 'closed' ? 'the store is closed' : 'the store is unreachable');
  }

  setState(state: ConnectionState): void {
    this.status.set(state, state === 'away' ? new StoreError('AWAY', 'the store is unreachable') : undefined);
    this.changes.notify();
  }
}

/** Wakes all waiters at each notification. A notification carries no data, so each waiter reads the state again. */
export class ChangeNotifier {
  readonly #waiters = new Set<() => void>();

  notify(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }

  /** Resolves at the next `notify`, or when `signal` aborts. */
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
