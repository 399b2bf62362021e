// The whole contract in one process: the bus of `weir standalone`, of the demo and of most tests.
import { type Clock, systemClock } from '@weir/runtime';
import type { ConnectionState, Store } from '../contract.ts';
import type { StoreError } from '../errors.ts';
import { emptyLedger } from './ledger.ts';
import { MemoryConnection } from './memory-connection.ts';
import { emptyHeartbeatContent, MemoryHeartbeats } from './memory-heartbeats.ts';
import { emptySuspensionContent, MemorySuspensions } from './memory-suspensions.ts';
import { emptyTableContent, MemoryTable } from './memory-table.ts';
import { MemoryUsage } from './memory-usage.ts';

export type StateSection = 'table' | 'lives' | 'ledger' | 'cutoffs';

export interface MemoryStoreOptions {
  /** Rules the life of heartbeats and how long usage is kept. Default: the system's. */
  readonly clock?: Clock;
  /** Told after each change of a part that a state directory keeps; the calls that may wait for it do. */
  readonly onChange?: (part: StateSection) => Promise<void> | void;
  /** Runs at the end of `close`. */
  readonly onClose?: () => Promise<void>;
  /** Revisions that are kept for followers; fewer in tests. */
  readonly keptRevisions?: number;
}

export class MemoryStore implements Store {
  readonly table: MemoryTable;
  readonly heartbeats: MemoryHeartbeats;
  readonly usage: MemoryUsage;
  readonly suspensions: MemorySuspensions;
  /** What can happen to a real store, for tests. */
  readonly faults: MemoryFaults;
  readonly #connection = new MemoryConnection();
  readonly #onClose: () => Promise<void>;

  constructor({ clock = systemClock, onChange, onClose, keptRevisions }: MemoryStoreOptions = {}) {
    const connection = this.#connection;
    const told = (part: StateSection) => async (): Promise<void> => onChange?.(part);
    this.table = new MemoryTable({
      connection,
      onChange: told('table'),
      ...(keptRevisions === undefined ? {} : { keptRevisions }),
    });
    this.heartbeats = new MemoryHeartbeats({ connection, clock, onChange: told('lives') });
    this.usage = new MemoryUsage({ connection, clock, onChange: told('ledger') });
    this.suspensions = new MemorySuspensions({ gate: connection, onChange: told('cutoffs') });
    this.faults = faultsOf(this, connection);
    this.#onClose = async () => onClose?.();
  }

  get connection(): ConnectionState {
    return this.#connection.status.state;
  }

  get connectionError(): StoreError | undefined {
    return this.#connection.status.error;
  }

  onConnectionChange(listener: (state: ConnectionState) => void): () => void {
    return this.#connection.status.onChange(listener);
  }

  async close(): Promise<void> {
    if (this.connection === 'closed') return;
    this.#connection.setState('closed');
    await this.#onClose();
  }
}

export interface MemoryFaults {
  /** Every call rejects as AWAY until `comeBack`. */
  goAway(): void;
  comeBack(): void;
  /** As Redis after it was started without its data. */
  wipe(): void;
  /** Remembers the present content; what it returns brings it back, as a failover that lost what came after. */
  checkpoint(): () => void;
}

function faultsOf(store: MemoryStore, gate: MemoryConnection): MemoryFaults {
  const replace = (content: ReturnType<typeof contentOf>): void => {
    store.table.content = content.table;
    store.heartbeats.content = content.heartbeats;
    store.usage.content = content.usage;
    store.suspensions.content = content.cutoffs;
    gate.changes.notify();
  };
  return {
    goAway: () => gate.setState('away'),
    comeBack: () => gate.setState('ready'),
    wipe: () =>
      replace({
        table: emptyTableContent(),
        heartbeats: emptyHeartbeatContent(),
        usage: emptyLedger(),
        cutoffs: emptySuspensionContent(),
      }),
    checkpoint() {
      const saved = structuredClone(contentOf(store));
      return () => replace(structuredClone(saved));
    },
  };
}

function contentOf(store: MemoryStore) {
  return {
    table: store.table.content,
    heartbeats: store.heartbeats.content,
    usage: store.usage.content,
    cutoffs: store.suspensions.content,
  };
}

export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new MemoryStore(options);
}
