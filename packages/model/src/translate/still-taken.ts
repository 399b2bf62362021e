// Whether a Service that found its ports taken would find the same now, without deciding it again: for one port thousands may wait.
import type { RefusalReason } from '../reason.ts';
import type { Verdict } from '../table/entry.ts';
import { type NodeWish, type PoolRequest, placeInPool } from './pool.ts';

/** How a message calls the holder of a port; only what the tenant who asks may know. */
export type HolderText = (uid: string) => string;

/** Whether it would be told the same, in the world as it is. */
export type StillTaken = (holderText: HolderText) => boolean;

/**
 * Of a Service that is refused whole because of `refusal`, as its placement said; undefined: it may find it otherwise only because it is
 * asked again. Only placement is looked at: all else that it depends on is of itself, its tenant or the nodes, and says so when it changes.
 */
export function stillTakenFor(
  wish: NodeWish,
  request: PoolRequest,
  refusal: Verdict<RefusalReason>,
): StillTaken | undefined {
  const { service, ports, modes, hosts, tenant, fleet, nodes, taken, held } = request;
  // Who loses what it had is asked otherwise the next time: as one that is new.
  if (held !== undefined || taken.listenersOf(service.uid).length > 0) return undefined;
  // One by one: what else came with the request, its `holderText` above all, would keep all tenants of that time for each who waits.
  const question = { service, ports, modes, hosts, tenant, fleet, nodes, taken, held };
  return (holderText) => {
    const result = placeInPool(wish, { ...question, holderText });
    if (result.kind === 'placed') taken.give(service.uid, [], []);
    return (
      result.kind === 'conflict' &&
      result.refusal.reason === refusal.reason &&
      result.refusal.message === refusal.message
    );
  };
}
