import { WeirError } from '@weir/runtime';
import type { Store, SuspensionStore, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';

/** Whether this controller leads. Winning an election is not enough to write the table: the store fences by a token of its own. */
export interface Leadership {
  /** Right at any moment, also just after this process stood still for a while and no timer has run yet. */
  readonly isLeader: boolean;
  /** Told of each change of `isLeader`; returns the way to stop. */
  onChange(listener: () => void): () => void;
  /** Looks at the election now: the store says that somebody else led after us. */
  recheck(): Promise<void>;
  /** Gives the lead away, so that the next one need not wait. */
  close(): Promise<void>;
}

/** Where there is only one. */
export const ALWAYS_LEADER: Leadership = Object.freeze({
  isLeader: true,
  onChange: () => () => undefined,
  recheck: async () => undefined,
  close: async () => undefined,
});

// Whoever was stopped between "do I lead?" and the write must not write when it wakes: so the question is asked once more, in the
// same turn in which the write leaves. What the store can fence by its token it does beside this; status, Events, TenantUsage,
// cut-offs and the claim of that token itself have nothing but this (and a status its version).
type LeaderState = Pick<Leadership, 'isLeader'>;

/** Not sent, because this controller leads no more. Nothing failed: whoever leads writes it. */
export class LeadershipLost extends WeirError<'LEAD_LOST'> {
  constructor() {
    super('LEAD_LOST', 'this controller leads no more, so it is left to the one that does');
  }
}

/** Reads go through; everything else rejects with `LeadLost` when the lead is gone. */
export function leaderOnlyApi(api: Pick<KubeApi, 'request'>, lead: LeaderState): Pick<KubeApi, 'request'> {
  const beforeSending = (): void => assertLeading(lead);
  return { request: (request) => api.request(request.method === 'GET' ? request : { ...request, beforeSending }) };
}

export interface LeaderOnlyStore {
  readonly table: TableStore;
  readonly suspensions: SuspensionStore;
  readonly usage: UsageStore;
}

/** The same of the parts of the store that only the leader writes. */
export function leaderOnlyStore(
  store: Pick<Store, 'table' | 'suspensions' | 'usage'>,
  lead: LeaderState,
): LeaderOnlyStore {
  const { table, suspensions, usage } = store;
  const only =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      assertLeading(lead);
      return write(...args);
    };
  return {
    table: {
      claimLeader: only(() => table.claimLeader()),
      openEpoch: only((request) => table.openEpoch(request)),
      publish: only((publication) => table.publish(publication)),
      meta: () => table.meta(),
      read: () => table.read(),
      readPartial: () => table.readPartial(),
      revisions: (options) => table.revisions(options),
    },
    suspensions: {
      put: only((suspension) => suspensions.put(suspension)),
      remove: only((uid) => suspensions.remove(uid)),
      markComplete: only(() => suspensions.markComplete()),
      read: () => suspensions.read(),
      watch: (signal) => suspensions.watch(signal),
    },
    usage: {
      seed: only((seed) => usage.seed(seed)),
      fold: only((node, life) => usage.fold(node, life)),
      flush: (report) => usage.flush(report),
      rows: (period, tenant) => usage.rows(period, tenant),
      periods: (tenant, length) => usage.periods(tenant, length),
      exportSeed: (months) => usage.exportSeed(months),
      isSeeded: () => usage.isSeeded(),
    },
  };
}

/** To lose the lead on the way is no failure: whoever leads now does it. */
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
  /** Claims the table: from then on nobody else can write it. */
  claim(): Promise<void>;
  isClaimed(): boolean;
  /** Reads everything again. */
  readSource(signal: AbortSignal): Promise<void>;
  /** Finds out who of the fleet is there. */
  waitForProxies(signal: AbortSignal): Promise<void>;
}

/**
 * What comes before the first decision of each term in the lead. The claim first: whoever led before may decide of newer objects
 * than ours until then, so only what is read after it is sure to undo nothing.
 */
export class LeaderTerm {
  readonly #steps: LeaderTermSteps;
  #term = {};
  /** The term in which everything was read: with thousands of objects that is not done anew each time that the store is away. */
  #readTerm: object | undefined;
  #begunTerm: object | undefined;

  constructor(parts: LeaderTermSteps) {
    this.#steps = parts;
  }

  /** The lead was lost, or somebody else was found to have led: what is known may be old. */
  end(): void {
    this.#term = {};
  }

  /** At once where that was done in this term. Rejects when the store is away, and with `LeadLost`; then come again. */
  async begin(signal: AbortSignal): Promise<void> {
    const { leader, claim, readSource, waitForProxies } = this.#steps;
    for (;;) {
      if (!leader.isLeader) throw new LeadershipLost();
      if (this.#steps.isClaimed() && this.#begunTerm === this.#term) return;
      const term = this.#term;
      await claim();
      // A store that was wiped is claimed a second time in one term: nobody else has decided anything in it.
      if (this.#begunTerm === term) continue;
      if (this.#readTerm !== term) await readSource(signal);
      this.#readTerm = term;
      await waitForProxies(signal);
      this.#begunTerm = term;
    }
  }
}
