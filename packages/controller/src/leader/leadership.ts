import { WeirError } from '@weir/runtime';
import type { Store, SuspensionStore, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';

// Leadership as a contract, writes that only the leader may make, and the start of a term.
/** Whether this controller leads. That alone does not allow it to write the table: the store fences by a token of its own. */
export interface Leadership {
  /** Correct at any moment, also if the process was stopped for a while and no timer has run since. */
  readonly isLeader: boolean;
  /** Calls the listener at each change of `isLeader`; returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Reads the election now, because the store says that another controller has led since. */
  recheck(): Promise<void>;
  /** Releases the lead, so that the next leader need not wait until it runs out. */
  close(): Promise<void>;
}

/** The leadership of a controller without replicas. */
export const ALWAYS_LEADER: Leadership = Object.freeze({
  isLeader: true,
  onChange: () => () => undefined,
  recheck: async () => undefined,
  close: async () => undefined,
});

// A process that is stopped between its check of the lead and its write must not write when it continues. So the lead is checked once
// more in the event loop turn that sends the write. The table is also fenced by the store's token. Status, Events, TenantUsages,
// suspensions and the claim of the token have no other protection (a status write also has the version of its object).
type LeaderState = Pick<Leadership, 'isLeader'>;

/** A write was not sent because this controller has lost the lead. Nothing failed: the new leader writes it. */
export class LeadershipLost extends WeirError<'LEAD_LOST'> {
  constructor() {
    super('LEAD_LOST', 'this controller has lost the lead; the new leader takes over the write');
  }
}

/** Passes reads through; every other request rejects with `LeadershipLost` if the lead is lost. */
export function leaderOnlyApi(api: Pick<KubeApi, 'request'>, lead: LeaderState): Pick<KubeApi, 'request'> {
  const beforeSending = (): void => assertLeading(lead);
  return { request: (request) => api.request(request.method === 'GET' ? request : { ...request, beforeSending }) };
}

export interface LeaderOnlyStore {
  readonly table: TableStore;
  readonly suspensions: SuspensionStore;
  readonly usage: UsageStore;
}

/** Passes reads through; every write that only the leader makes rejects with `LeadershipLost` if the lead is lost. */
export function leaderOnlyStore(
  store: Pick<Store, 'table' | 'suspensions' | 'usage'>,
  lead: LeaderState,
): LeaderOnlyStore {
  const { table, suspensions, usage } = store;
  const whileLeading =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      assertLeading(lead);
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

/** Loss of the lead during the run is not a failure, since the new leader does the work. */
export async function runWhileLeading(run: () => Promise<void>): Promise<'done' | 'lead-lost'> {
  try {
    await run();
    return 'done';
  } catch (error) {
    if (error instanceof LeadershipLost) return 'lead-lost';
    throw error;
  }
}

function assertLeading(lead: LeaderState): void {
  if (!lead.isLeader) throw new LeadershipLost();
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
 * The steps before the first translation of each term. The claim comes first: until then the previous leader may publish from newer
 * objects than this controller has read, and only objects read after the claim are sure not to undo that.
 */
export class LeaderTerm {
  readonly #steps: LeaderTermSteps;
  #term = {};
  /** The term in which all objects were read: they are read once in a term, however often the store becomes unreachable. */
  #readTerm: object | undefined;
  #begunTerm: object | undefined;

  constructor(steps: LeaderTermSteps) {
    this.#steps = steps;
  }

  /** The lead was lost, or another controller has led meanwhile: what this controller has read may be outdated. */
  end(): void {
    this.#term = {};
  }

  /** Resolves at once if the term has begun. Rejects if the store is unreachable, or with `LeadershipLost`; then call again. */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, readSource, waitForProxies } = this.#steps;
    for (;;) {
      if (!leader.isLeader) throw new LeadershipLost();
      if (this.#steps.isClaimed() && this.#begunTerm === this.#term) return;
      const term = this.#term;
      await claim();
      // A store that was wiped is claimed a second time in the same term: no other controller has published to it.
      if (this.#begunTerm === term) continue;
      if (this.#readTerm !== term) await readSource(signal);
      this.#readTerm = term;
      await waitForProxies(signal);
      this.#begunTerm = term;
    }
  }
}
