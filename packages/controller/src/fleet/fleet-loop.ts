// Reads the proxies' heartbeats and derives the status of the Services from them. Also checks that the store still holds the
// published table and the suspensions.
import { isInForce, withThrottleNotices } from '@weir/model';
import { type Clock, Loop } from '@weir/runtime';
import { type LoopContext, logLoopFailure, type ReconcileLoop } from '../controller/reconcile-loop.ts';
import type { StatusReconciler } from '../status/status-reconciler.ts';
import type { SuspensionReconciler } from '../suspensions/suspension-reconciler.ts';
import type { PartialSnapshot, TableReconciler } from '../table/table-reconciler.ts';
import type { UsageReconciler } from '../usage/usage-reconciler.ts';
import type { FleetReconciler } from './fleet-reconciler.ts';

const FLEET_LOOP = { gapMs: 200, resyncMs: 1_000, retryMs: [1_000, 5_000] } as const;
const FLEET_POLL_WHILE_PENDING_MS = 250;

export interface FleetLoopOptions {
  readonly table: TableReconciler;
  readonly suspensions: SuspensionReconciler;
  readonly usage: Pick<UsageReconciler, 'notices'>;
  /** Undefined if this controller reports no status. Then the loop reads no heartbeats. */
  readonly fleet: FleetReconciler | undefined;
  readonly status: StatusReconciler | undefined;
  /** Returns the snapshot of the last attempt to publish; undefined before the first attempt. */
  readonly snapshot: () => PartialSnapshot | undefined;
}

export function createFleetLoop(context: LoopContext, options: FleetLoopOptions): ReconcileLoop {
  const { store, leader, metrics, clock, log, wake } = context;
  const { table, suspensions, usage, fleet, status } = options;
  const pollWhilePending = createSingleTimer(clock, FLEET_POLL_WHILE_PENDING_MS, () => wake('fleet'));
  const loop = new Loop({
    ...FLEET_LOOP,
    clock,
    onError: logLoopFailure(log, 'failed to read the heartbeats of the proxies; retrying'),
    async run() {
      const { translation } = table;
      const snapshot = options.snapshot();
      if (!leader.isLeader || snapshot === undefined) return;
      if (translation === undefined) {
        if (store.connection !== 'ready') status?.setUndecided(snapshot);
        return;
      }
      if (!(await isStoreIntact(table, suspensions, fleet?.cutoffSequence))) {
        table.recheckStore();
        wake('table');
      }
      if (fleet === undefined) return;
      const input = {
        table: translation.table,
        suspensions: suspensions.stored.filter((suspension) => isInForce(suspension, clock.now())),
        snapshot,
        isUnpublished: table.hasPublishFailed,
        notices: withThrottleNotices(usage.notices, translation.table),
      };
      await metrics.measure('fleet', () => fleet.reconcile(input));
      if (fleet.unreachableNodes !== options.snapshot()?.unreachableNodes) wake('table');
      if (fleet.hasPendingService) pollWhilePending.start();
    },
  });
  return {
    loop,
    onLeadershipLost: () => fleet?.reset(),
    onStoreReady() {
      fleet?.onStoreReconnected();
      loop.trigger();
    },
    close: () => pollWhilePending.cancel(),
  };
}

/**
 * Reads the store. Returns false if the store was wiped or fell back to an older copy. Returns true if the store is unreachable,
 * because then its content is unknown.
 */
async function isStoreIntact(
  table: TableReconciler,
  suspensions: SuspensionReconciler,
  cutoffSequence: number | undefined,
): Promise<boolean> {
  try {
    return (await table.isStoreIntact()) && (await suspensions.isStoreIntact(cutoffSequence));
  } catch {
    return true;
  }
}

/** Creates a timer. `start` has no effect while the timer runs. */
function createSingleTimer(clock: Clock, ms: number, onTimeout: () => void): { start(): void; cancel(): void } {
  let timer: ReturnType<Clock['setTimeout']> | undefined;
  return {
    start() {
      timer ??= clock.setTimeout(() => {
        timer = undefined;
        onTimeout();
      }, ms);
    },
    cancel: () => timer?.cancel(),
  };
}
