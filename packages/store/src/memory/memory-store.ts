// Implements the store contract in the memory of one process, for `weir standalone`, the demo and most tests.
import { type Clock, systemClock } from '@weir/runtime';
import type { ConnectionState, Store } from '../contract.ts';
import type { StoreError } from '../errors.ts';
import { emptyLedger } from './ledger.ts';
import { MemoryConnection } from './memory-connection.ts';
import { emptyHeartbeatContent, MemoryHeartbeats } from './memory-heartbeats.ts';
import { emptyLeaseContent, MemoryLeases } from './memory-leases.ts';
import { emptySuspensionContent, MemorySuspensions } from './memory-suspensions.ts';
import { emptyTableContent, MemoryTable } from './memory-table.ts';
import { MemoryUsage } from './memory-usage.ts';

export type StateSection = 'table' | 'lives' | 'ledger' | 'cutoffs';

export interface MemoryStoreOptions {
  /** The clock that determines when heartbeats and usage expire. Default: the system clock. */
  readonly clock?: Clock;
  /** Called after each change of a section. `beginIncarnation` and changes of suspensions wait for the returned promise. */
  readonly onChange?: (section: StateSection) => Promise<void> | void;
  /** Called at the end of `close`. */
  readonly onClose?: () => Promise<void>;
  /** The number of revisions that are kept for followers. Tests keep fewer than the default. */
  readonly keptRevisions?: number;
}

export class MemoryStore implements Store {
  readonly table: MemoryTable;
  readonly heartbeats: MemoryHeartbeats;
  readonly usage: MemoryUsage;
  readonly suspensions: MemorySuspensions;
  readonly leases: MemoryLeases;
  /** Lets tests simulate failures of a store. */
  readonly faults: MemoryFaults;
  readonly #connection = new MemoryConnection();
  readonly #onClose: () => Promise<void>;

  constructor({ clock = systemClock, onChange, onClose, keptRevisions }: MemoryStoreOptions = {}) {
    const connection = this.#connection;
    const changeHandlerFor = (section: StateSection) => async (): Promise<void> => onChange?.(section);
    this.table = new MemoryTable({
      connection,
      onChange: changeHandlerFor('table'),
      ...(keptRevisions === undefined ? {} : { keptRevisions }),
    });
    this.heartbeats = new MemoryHeartbeats({ connection, clock, onChange: changeHandlerFor('lives') });
    this.usage = new MemoryUsage({ connection, clock, onChange: changeHandlerFor('ledger') });
    this.suspensions = new MemorySuspensions({ connection, clock, onChange: changeHandlerFor('cutoffs') });
    this.leases = new MemoryLeases({ connection, clock });
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
  /** Makes every call reject with AWAY until `comeBack` is called. */
  goAway(): void;
  comeBack(): void;
  /** Deletes all data, as a restart of Redis without persistence does. */
  wipe(): void;
  /** Saves the content. Returns a function that restores the saved content, as a failover to a stale replica does. */
  checkpoint(): () => void;
}

function faultsOf(store: MemoryStore, connection: MemoryConnection): MemoryFaults {
  const replace = (content: ReturnType<typeof contentOf>): void => {
    store.table.content = content.table;
    store.heartbeats.content = content.heartbeats;
    store.usage.content = content.usage;
    store.suspensions.content = content.suspensions;
    store.leases.content = content.leases;
    connection.changes.notify();
  };
  return {
    goAway: () => connection.setState('away'),
    comeBack: () => connection.setState('ready'),
    wipe: () =>
      replace({
        table: emptyTableContent(),
        heartbeats: emptyHeartbeatContent(),
        usage: emptyLedger(),
        suspensions: emptySuspensionContent(),
        leases: emptyLeaseContent(),
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
    suspensions: store.suspensions.content,
    leases: store.leases.content,
  };
}
