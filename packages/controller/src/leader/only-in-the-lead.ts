// Whoever was stopped between "do I lead?" and the write must not write when it wakes: so the question is asked once more, in the
// same turn in which the write leaves. What the store can fence by its token it does beside this; status, Events, TenantUsage,
// cut-offs and the claim of that token itself have nothing but this (and a status its version).
import { WeirError } from '@weir/runtime';
import type { CutoffStore, Store, TableStore, UsageStore } from '@weir/store';
import type { KubeApi } from '../kubernetes/kube-api.ts';
import type { Leadership } from './leadership.ts';

type Lead = Pick<Leadership, 'isLeader'>;

/** Not sent, because this controller leads no more. Nothing failed: whoever leads writes it. */
export class LeadLost extends WeirError<'LEAD_LOST'> {
  constructor() {
    super('LEAD_LOST', 'this controller leads no more, so it is left to the one that does');
  }
}

/** Reads go through; everything else rejects with `LeadLost` when the lead is gone. */
export function apiInTheLead(api: Pick<KubeApi, 'request'>, lead: Lead): Pick<KubeApi, 'request'> {
  const beforeSending = (): void => mustLead(lead);
  return { request: (request) => api.request(request.method === 'GET' ? request : { ...request, beforeSending }) };
}

/** The same of the parts of the store that only the leader writes. */
export function storeInTheLead(
  store: Pick<Store, 'table' | 'cutoffs' | 'usage'>,
  lead: Lead,
): { readonly table: TableStore; readonly cutoffs: CutoffStore; readonly usage: UsageStore } {
  const { table, cutoffs, usage } = store;
  const only =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      mustLead(lead);
      return write(...args);
    };
  return {
    table: {
      claimLeader: only(() => table.claimLeader()),
      openEpoch: only((request) => table.openEpoch(request)),
      publish: only((publication) => table.publish(publication)),
      meta: () => table.meta(),
      read: () => table.read(),
      remains: () => table.remains(),
      revisions: (options) => table.revisions(options),
    },
    cutoffs: {
      put: only((cutoff) => cutoffs.put(cutoff)),
      remove: only((uid) => cutoffs.remove(uid)),
      complete: only(() => cutoffs.complete()),
      read: () => cutoffs.read(),
      watch: (signal) => cutoffs.watch(signal),
    },
    usage: {
      seed: only((seed) => usage.seed(seed)),
      fold: only((node, life) => usage.fold(node, life)),
      flush: (report) => usage.flush(report),
      rows: (period, tenant) => usage.rows(period, tenant),
      periods: (tenant, length) => usage.periods(tenant, length),
      copy: (months) => usage.copy(months),
      isSeeded: () => usage.isSeeded(),
    },
  };
}

/** To lose the lead on the way is no failure: whoever leads now does it. */
export async function untilLost(run: () => Promise<void>): Promise<'done' | 'lead-lost'> {
  try {
    await run();
    return 'done';
  } catch (error) {
    if (error instanceof LeadLost) return 'lead-lost';
    throw error;
  }
}

function mustLead(lead: Lead): void {
  if (!lead.isLeader) throw new LeadLost();
}
