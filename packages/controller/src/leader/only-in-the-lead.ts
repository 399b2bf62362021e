// Whoever was stopped between "do I lead?" and the write must not write when it wakes: so the question is asked once more, in the
// same turn in which the write leaves. What the store can fence by its token it does beside this; status, Events, TenantUsage,
// cut-offs and the claim of that token itself have nothing but this (and a status its version).
import { WeirError } from '@weir/runtime';
import type { Store, SuspensionStore, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';
import type { Leadership } from './leadership.ts';

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

/** The same of the parts of the store that only the leader writes. */
export function leaderOnlyStore(
  store: Pick<Store, 'table' | 'suspensions' | 'usage'>,
  lead: LeaderState,
): { readonly table: TableStore; readonly cutoffs: SuspensionStore; readonly usage: UsageStore } {
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
    cutoffs: {
      put: only((cutoff) => suspensions.put(cutoff)),
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
