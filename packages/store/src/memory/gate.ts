import { ConnectionStatus } from '../connection-status.ts';
import type { ConnectionState } from '../contract.ts';
import { StoreError } from '../error.ts';
import { Bell } from './bell.ts';

/** What every call passes first. Memory is away only when a test says so, or after `close`. */
export class Gate {
  readonly status: ConnectionStatus = new ConnectionStatus('ready');
  /** Rings at every change that somebody may wait for. */
  readonly bell: Bell = new Bell();

  /** Throws AWAY unless the store is there. */
  pass(): void {
    const { state } = this.status;
    if (state === 'ready') return;
    throw new StoreError('AWAY', state === 'closed' ? 'the store is closed' : 'the store is away');
  }

  move(state: ConnectionState): void {
    this.status.move(state, state === 'away' ? new StoreError('AWAY', 'the store is away') : undefined);
    this.bell.ring();
  }
}
