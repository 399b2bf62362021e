// The whole contract in one process: the bus of `weir standalone`, of the demo and of most tests.
import { type Clock, systemClock } from '@weir/runtime';
import type { ConnectionState, Store } from '../contract.ts';
import type { StoreError } from '../error.ts';
import { Gate } from './gate.ts';
import { emptyLedger } from './ledger.ts';
import { emptyCutoffContent, MemoryCutoffs } from './memory-cutoffs.ts';
import { emptyHeartbeatContent, MemoryHeartbeats } from './memory-heartbeats.ts';
import { emptyTableContent, MemoryTable } from './memory-table.ts';
import { MemoryUsage } from './memory-usage.ts';

export type StorePart = 'table' | 'lives' | 'ledger' | 'cutoffs';

export interface MemoryStoreOptions {
  /** Rules the life of heartbeats and how long usage is kept. Default: the system's. */
  readonly clock?: Clock;
  /** Told after each change of a part that a state directory keeps; the calls that may wait for it do. */
  readonly onChange?: (part: StorePart) => Promise<void> | void;
  /** Runs at the end of `close`. */
  readonly onClose?: () => Promise<void>;
  /** Revisions that are kept for followers; fewer in tests. */
  readonly keptRevisions?: number;
}

export class MemoryStore implements Store {
  readonly table: MemoryTable;
  readonly heartbeats: MemoryHeartbeats;
  readonly usage: MemoryUsage;
  readonly cutoffs: MemoryCutoffs;
  /** What can happen to a real store, for tests. */
  readonly faults: MemoryFaults;
  readonly #gate = new Gate();
  readonly #onClose: () => Promise<void>;

  constructor({ clock = systemClock, onChange, onClose, keptRevisions }: MemoryStoreOptions = {}) {
    const gate = this.#gate;
    const told = (part: StorePart) => async (): Promise<void> => onChange?.(part);
    this.table = new MemoryTable({
      gate,
      onChange: told('table'),
      ...(keptRevisions === undefined ? {} : { keptRevisions }),
    });
    this.heartbeats = new MemoryHeartbeats({ gate, clock, onChange: told('lives') });
    this.usage = new MemoryUsage({ gate, clock, onChange: told('ledger') });
    this.cutoffs = new MemoryCutoffs({ gate, onChange: told('cutoffs') });
    this.faults = faultsOf(this, gate);
    this.#onClose = async () => onClose?.();
  }

  get connection(): ConnectionState {
    return this.#gate.status.state;
  }

  get problem(): StoreError | undefined {
    return this.#gate.status.problem;
  }

  onConnection(listener: (state: ConnectionState) => void): () => void {
    return this.#gate.status.listen(listener);
  }

  async close(): Promise<void> {
    if (this.connection === 'closed') return;
    this.#gate.move('closed');
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

function faultsOf(store: MemoryStore, gate: Gate): MemoryFaults {
  const replace = (content: ReturnType<typeof contentOf>): void => {
    store.table.content = content.table;
    store.heartbeats.content = content.heartbeats;
    store.usage.content = content.usage;
    store.cutoffs.content = content.cutoffs;
    gate.bell.ring();
  };
  return {
    goAway: () => gate.move('away'),
    comeBack: () => gate.move('ready'),
    wipe: () =>
      replace({
        table: emptyTableContent(),
        heartbeats: emptyHeartbeatContent(),
        usage: emptyLedger(),
        cutoffs: emptyCutoffContent(),
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
    cutoffs: store.cutoffs.content,
  };
}

export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new MemoryStore(options);
}
