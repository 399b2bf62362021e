import type { Clock } from '@weir/runtime';
import type { Store } from '../../src/contract.ts';

/** An implementation of the store contract that a test checks. */
export interface StoreUnderTest {
  readonly name: string;
  open(options?: StoreFixtureOptions): Promise<StoreFixture>;
}

export interface StoreFixtureOptions {
  readonly keptRevisions?: number;
}

/** An initially empty store of a fleet, and the failures that a test can cause. */
export interface StoreFixture extends AsyncDisposable {
  /** The clock of the processes that use the store. */
  readonly clock: Clock;
  /** Opens the store as another process would. Disposing the fixture closes the opened store. */
  connect(): Promise<Store>;
  /** Stops the store; calls fail until `comeBack`. */
  goAway(): Promise<void>;
  /** Starts the store with its data; resolves when all connections are ready. */
  comeBack(): Promise<void>;
  /** Deletes all data; resolves when all connections are ready. */
  wipe(): Promise<void>;
  /** Saves the content. Returns a function that restores the saved content, as a failover to a stale replica does. */
  checkpoint(): Promise<() => Promise<void>>;
  /** Waits until the assertion holds, for about `ms` milliseconds of `clock` at most. */
  eventually(ms: number, assertion: () => Promise<void>): Promise<void>;
  /**
   * Makes everything that the store knows about leases `ms` milliseconds older, without waiting. With a negative `ms` everything becomes
   * newer, as if the clock of the store was set back.
   */
  passLeaseTime(ms: number): Promise<void>;
}
