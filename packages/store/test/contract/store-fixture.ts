import type { Clock } from '@weir/runtime';
import type { Store } from '../../src/contract.ts';

/** A kind of store that keeps the contract, and what can be done to it from outside. */
export interface StoreUnderTest {
  readonly name: string;
  open(options?: StoreFixtureOptions): Promise<StoreFixture>;
}

export interface StoreFixtureOptions {
  readonly keptRevisions?: number;
}

/** One empty store, as the processes of a fleet see it. */
export interface StoreFixture extends AsyncDisposable {
  /** Of what runs in the processes. */
  readonly clock: Clock;
  /** A handle as a process of its own would have it. Closed with the world. */
  connect(): Promise<Store>;
  /** Down; calls fail until `comeBack`. */
  goAway(): Promise<void>;
  /** Up again with its data; resolves when the handles are ready. */
  comeBack(): Promise<void>;
  /** Lost everything; resolves when the handles are ready. */
  wipe(): Promise<void>;
  /** Remembers the present content; what it returns brings it back, as a failover that lost what came after. */
  checkpoint(): Promise<() => Promise<void>>;
  /** Lets time pass until the assertion holds. */
  eventually(ms: number, assertion: () => Promise<void>): Promise<void>;
}
