import { WeirError } from '@weir/runtime';
import type { Store, SuspensionStore, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';

// This file defines the contract of leadership, the writes that only the leader may make, and the start of a term.

/**
 * Reports whether this controller leads. To write the table, a leader also needs a valid leader token, because the store checks the
 * token.
 */
export interface Leadership {
  /** Whether this controller leads. Correct even if the process was stopped for a while and no timer has run since. */
  readonly isLeader: boolean;
  /** Calls the listener at each change of `isLeader`; returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Reads the Lease now. Call this when the store refuses a table because this controller has lost its claim. */
  recheck(): Promise<void>;
  /** Releases the Lease, so that the next leader need not wait until the Lease expires. */
  close(): Promise<void>;
}

/** The leadership of a controller without replicas. */
export const ALWAYS_LEADER: Leadership = Object.freeze({
  isLeader: true,
  onChange: () => () => undefined,
  recheck: async () => undefined,
  close: async () => undefined,
});

// A process may be stopped between its check of leadership and its write, and lose leadership while it is stopped. Therefore leadership is
// checked a second time, in the iteration of the event loop that sends the write. The table is also protected by the leader token, and a
// status write by the version of its object. Events, TenantUsages, suspensions and the claim of the leader token have no other protection.
type LeaderState = Pick<Leadership, 'isLeader'>;

/**
 * Thrown when a write is not sent because this controller has lost leadership. This is not a failure, because the new leader writes
 * instead.
 */
export class LeadershipLost extends WeirError<'LEADERSHIP_LOST'> {
  constructor() {
    super(
      'LEADERSHIP_LOST',
      'this controller has lost leadership and did not send the write; the new leader writes instead',
    );
  }
}

/** Returns an API that passes reads through. After the loss of leadership, every other request rejects with `LeadershipLost`. */
export function leaderOnlyApi(api: Pick<KubeApi, 'request'>, leader: LeaderState): Pick<KubeApi, 'request'> {
  const beforeSending = (): void => assertLeading(leader);
  return { request: (request) => api.request(request.method === 'GET' ? request : { ...request, beforeSending }) };
}

export interface LeaderOnlyStore {
  readonly table: TableStore;
  readonly suspensions: SuspensionStore;
  readonly usage: UsageStore;
}

/**
 * Returns a store that passes reads through. After the loss of leadership, every write that only the leader makes rejects with
 * `LeadershipLost`.
 */
export function leaderOnlyStore(
  store: Pick<Store, 'table' | 'suspensions' | 'usage'>,
  leader: LeaderState,
): LeaderOnlyStore {
  const { table, suspensions, usage } = store;
  const whileLeading =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      assertLeading(leader);
      return write(...args);
    };
  return {
    table: {
      claimLeader: whileLeading(() => table.claimLeader()),
      openEpoch: whileLeading((request) => table.openEpoch(request)),
      publish: whileLeading((publication) => table.publish(publication)),
      meta: () => table.meta(),
      read: () => table.read(),
      readPartial: () => table.readPartial(),
      revisions: (options) => table.revisions(options),
    },
    suspensions: {
      put: whileLeading((suspension, adopts) => suspensions.put(suspension, adopts)),
      remove: whileLeading((uid, release) => suspensions.remove(uid, release)),
      markComplete: whileLeading((known) => suspensions.markComplete(known)),
      read: () => suspensions.read(),
      watch: (signal) => suspensions.watch(signal),
      audit: (before) => suspensions.audit(before),
    },
    usage: {
      seed: whileLeading((seed) => usage.seed(seed)),
      fold: whileLeading((node, life) => usage.fold(node, life)),
      foldGoneServices: whileLeading((existing, now) => usage.foldGoneServices(existing, now)),
      foldGoneNodes: whileLeading((existing, now) => usage.foldGoneNodes(existing, now)),
      flush: (report) => usage.flush(report),
      rows: (period, tenant) => usage.rows(period, tenant),
      periods: (tenant, length) => usage.periods(tenant, length),
      series: (query) => usage.series(query),
      exportSeed: (months) => usage.exportSeed(months),
      isSeeded: () => usage.isSeeded(),
      restoredAt: () => usage.restoredAt(),
      reportedInFull: () => usage.reportedInFull(),
    },
  };
}

/**
 * Runs `run`. Returns `leadership-lost` if `run` rejects with `LeadershipLost`. This is not a failure, because the new leader does
 * the work.
 */
export async function runWhileLeading(run: () => Promise<void>): Promise<'done' | 'leadership-lost'> {
  try {
    await run();
    return 'done';
  } catch (error) {
    if (error instanceof LeadershipLost) return 'leadership-lost';
    throw error;
  }
}

function assertLeading(leader: LeaderState): void {
  if (!leader.isLeader) throw new LeadershipLost();
}

export interface LeaderTermSteps {
  readonly leader: Pick<Leadership, 'isLeader'>;
  /** Claims the table. After the claim, no other controller can write the table until it claims the table as well. */
  claim(): Promise<void>;
  isClaimed(): boolean;
  /** Reads all objects of the source again. */
  readSource(signal: AbortSignal): Promise<void>;
  /** Waits until every node that had a proxy has a live proxy, or until a time limit. */
  waitForProxies(signal: AbortSignal): Promise<void>;
}

/**
 * Runs the steps before the first translation of each term. The claim comes first, because until the claim the previous leader may publish
 * a table from newer objects than this controller has read. Objects that are read after the claim are at least as new as the objects from
 * which that table was made.
 */
export class LeaderTerm {
  readonly #steps: LeaderTermSteps;
  #term = {};
  /** The term in which all objects were last read. Objects are read once per term, even if the store becomes unreachable several times. */
  #sourceReadTerm: object | undefined;
  #startedTerm: object | undefined;

  constructor(steps: LeaderTermSteps) {
    this.#steps = steps;
  }

  /**
   * Ends the term. Call this when leadership was lost or another controller has led, because the objects that were read may be
   * outdated.
   */
  end(): void {
    this.#term = {};
  }

  /**
   * Begins the term, unless it has already begun. Rejects if the store is unreachable, or with `LeadershipLost` if leadership is
   * lost; then call `begin` again.
   */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, readSource, waitForProxies } = this.#steps;
    for (;;) {
      if (!leader.isLeader) throw new LeadershipLost();
      if (this.#steps.isClaimed() && this.#startedTerm === this.#term) return;
      const term = this.#term;
      await claim();
      // After a wipe of the store, the table is claimed again in the same term. The other steps are not repeated, because no other
      // controller has published a table.
      if (this.#startedTerm === term) continue;
      if (this.#sourceReadTerm !== term) await readSource(signal);
      this.#sourceReadTerm = term;
      await waitForProxies(signal);
      this.#startedTerm = term;
    }
  }
}
