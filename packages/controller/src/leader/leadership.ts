import { WeirError } from '@weir/runtime';
import type { Store, SuspensionStore, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';

// This file defines the contract of leadership, the writes that only the leader may make, and the start of a term.

/** Tells whether this controller leads. Leading is not enough to write the table, because the store also checks a fencing token. */
export interface Leadership {
  /** Always correct, even if the process was stopped for a while and no timer has run since. */
  readonly isLeader: boolean;
  /** Calls the listener at each change of `isLeader`; returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Reads the election now, because the store says that another controller has led since. */
  recheck(): Promise<void>;
  /** Releases the Lease, so that the next leader need not wait until it expires. */
  close(): Promise<void>;
}

/** The leadership of a controller without replicas. */
export const ALWAYS_LEADER: Leadership = Object.freeze({
  isLeader: true,
  onChange: () => () => undefined,
  recheck: async () => undefined,
  close: async () => undefined,
});

// A process that is stopped between its check of leadership and its write must not write when it continues. Therefore leadership is
// checked once more in the event loop turn that sends the write. Status, Events, TenantUsages, suspensions and the claim of the
// fencing token have no other protection (a status write also has the version of its object); the table is protected by the token
// as well.
type LeaderState = Pick<Leadership, 'isLeader'>;

/** A write was not sent because this controller has lost leadership. This is not a failure, because the new leader writes instead. */
export class LeadershipLost extends WeirError<'LEADERSHIP_LOST'> {
  constructor() {
    super('LEADERSHIP_LOST', 'this controller has lost leadership; the new leader takes over the write');
  }
}

/** Passes reads through; every other request rejects with `LeadershipLost` after the loss of leadership. */
export function leaderOnlyApi(api: Pick<KubeApi, 'request'>, leader: LeaderState): Pick<KubeApi, 'request'> {
  const beforeSending = (): void => assertLeading(leader);
  return { request: (request) => api.request(request.method === 'GET' ? request : { ...request, beforeSending }) };
}

export interface LeaderOnlyStore {
  readonly table: TableStore;
  readonly suspensions: SuspensionStore;
  readonly usage: UsageStore;
}

/** Passes reads through; every write that only the leader makes rejects with `LeadershipLost` after the loss of leadership. */
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
      put: whileLeading((suspension) => suspensions.put(suspension)),
      remove: whileLeading((uid) => suspensions.remove(uid)),
      markComplete: whileLeading(() => suspensions.markComplete()),
      read: () => suspensions.read(),
      watch: (signal) => suspensions.watch(signal),
    },
    usage: {
      seed: whileLeading((seed) => usage.seed(seed)),
      fold: whileLeading((node, life) => usage.fold(node, life)),
      flush: (report) => usage.flush(report),
      rows: (period, tenant) => usage.rows(period, tenant),
      periods: (tenant, length) => usage.periods(tenant, length),
      exportSeed: (months) => usage.exportSeed(months),
      isSeeded: () => usage.isSeeded(),
    },
  };
}

/** Runs `run`. Loss of leadership during the run is not a failure, because the new leader does the work. */
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
  /** Claims the table: from then on no other controller can write it. */
  claim(): Promise<void>;
  isClaimed(): boolean;
  /** Reads all objects again. */
  readSource(signal: AbortSignal): Promise<void>;
  /** Finds out which nodes have a live proxy. */
  waitForProxies(signal: AbortSignal): Promise<void>;
}

/**
 * The steps before the first translation of each term. The claim comes first: until then the previous leader may publish a table
 * from newer objects than this controller has read. Only objects that are read after the claim cannot undo that table.
 */
export class LeaderTerm {
  readonly #steps: LeaderTermSteps;
  #term = {};
  /** The term in which all objects were read. They are read once in a term, even if the store becomes unreachable several times. */
  #sourceReadTerm: object | undefined;
  #startedTerm: object | undefined;

  constructor(steps: LeaderTermSteps) {
    this.#steps = steps;
  }

  /** Ends the term when leadership was lost or another controller has led meanwhile: the objects that were read may be outdated. */
  end(): void {
    this.#term = {};
  }

  /** Resolves at once if the term has begun. Rejects if the store is unreachable, or with `LeadershipLost`; then call again. */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, readSource, waitForProxies } = this.#steps;
    for (;;) {
      if (!leader.isLeader) throw new LeadershipLost();
      if (this.#steps.isClaimed() && this.#startedTerm === this.#term) return;
      const term = this.#term;
      await claim();
      // A store that was wiped is claimed a second time in the same term: no other controller has published to it.
      if (this.#startedTerm === term) continue;
      if (this.#sourceReadTerm !== term) await readSource(signal);
      this.#sourceReadTerm = term;
      await waitForProxies(signal);
      this.#startedTerm = term;
    }
  }
}
