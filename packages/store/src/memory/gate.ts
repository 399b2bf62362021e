import { ConnectionStatus } from '../connection-status.ts';
import type { ConnectionState } from '../contract.ts';
import { StoreError } from '../error.ts';
import { ChangeNotifier } from './bell.ts';

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
