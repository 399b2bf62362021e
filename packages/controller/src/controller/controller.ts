import type { FleetSettings, Problem, TranslatorOutput } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { Store } from '@weir/store';
import { createFleetLoop } from '../fleet/fleet-loop.ts';
import { FleetReconciler } from '../fleet/fleet-reconciler.ts';
import { ALWAYS_LEADER, type Leadership, leaderOnlyStore } from '../leader/leadership.ts';
import { createStatusLoop, StatusReconciler } from '../status/status-reconciler.ts';
import type { StatusSink } from '../status/status-sink.ts';
import { DeferredSuspensionCalls, type SuspensionObjectWriter } from '../suspensions/deferred-suspension-calls.ts';
import { createSuspensionLoop, SuspensionReconciler } from '../suspensions/suspension-reconciler.ts';
import { TableLoop } from '../table/table-loop.ts';
import { TableReconciler } from '../table/table-reconciler.ts';
import type { UsageArchive } from '../usage/tenant-usage.ts';
import { createUsageLoop, UsageReconciler } from '../usage/usage-reconciler.ts';
import type { Source } from '../watch/source.ts';
import { addControllerMetrics, type ControllerMetrics } from './controller-metrics.ts';
import type { LoopContext, ReconcileLoop, ReconcileLoopName, WakeLoop } from './reconcile-loop.ts';

export interface ControllerOptions {
  readonly source: Source;
  readonly store: Store;
  readonly settings: FleetSettings;
  readonly log: Logger;
  readonly clock: Clock;
  /** Default: this is the only controller. */
  readonly leader?: Leadership;
  /** Default: no status is reported, and no heartbeats are read. */
  readonly status?: StatusSink;
  /** Keeps usage when the store is wiped. Default: a wiped store gets the usage that this process remembers. */
  readonly archive?: UsageArchive;
  /** Default: expired Suspensions are not deleted, and suspensions made in the store do not become objects. */
  readonly suspensions?: SuspensionObjectWriter;
  /** Default: metrics that are not exported. */
  readonly metrics?: ControllerMetrics;
}

export interface Controller {
  /** Resolves once every change of the source so far is published, or another controller leads. */
  idle(): Promise<void>;
  /** Returns the problems of the last translation, or before the first translation the problems of the source. */
  problems(): readonly Problem[];
  /** Returns the last translation; undefined before the first, and while another controller leads. */
  translation(): TranslatorOutput | undefined;
  close(): Promise<void>;
}

/** Follows the source, publishes the routing table to the store, and reports status. Closing leaves the source and the store open. */
export function startController(options: ControllerOptions): Controller {
  const { source, store, settings, log, clock, leader = ALWAYS_LEADER } = options;
  const metrics = options.metrics ?? addControllerMetrics(createMetrics(), clock);
  const leaderStore = leaderOnlyStore(store, leader);
  // Loops trigger each other only through this function.
  const wake: WakeLoop = (name) => loops[name].loop.trigger();
  const context: LoopContext = { source, store, leaderStore, settings, leader, metrics, clock, log, wake };
  const logFor = (part: string): Logger => log.child({ part });

  const table = new TableReconciler({ store: leaderStore.table, log: logFor('table') });
  const deferredCalls = new DeferredSuspensionCalls({
    source,
    writer: options.suspensions,
    store: store.suspensions,
    clock,
    log: logFor('suspensions'),
    onResult: () => wake('table'),
  });
  const suspensions = new SuspensionReconciler({
    source,
    store: leaderStore.suspensions,
    clock,
    log: logFor('suspensions'),
    deferredCalls,
    onExpiry: () => wake('table'),
    onRequest: () => wake('suspensions'),
  });
  const usage = new UsageReconciler({
    store: leaderStore.usage,
    heartbeats: store.heartbeats,
    archive: options.archive,
    clock,
    log: logFor('usage'),
  });
  const status = options.status && new StatusReconciler({ sink: options.status, onStatusChange: () => wake('status') });
  const fleet =
    status &&
    new FleetReconciler({
      heartbeats: store.heartbeats,
      clock,
      log: logFor('fleet'),
      onViews: (views) => status.setDesired({ kind: 'decided', views }),
    });

  const loseLeadership = (): void => {
    for (const each of Object.values(loops)) each.onLeadershipLost?.();
  };
  const tableLoop = new TableLoop(context, { table, suspensions, fleet, loseLeadership });
  const loops: { readonly [N in ReconcileLoopName]: ReconcileLoop } = {
    table: tableLoop,
    fleet: createFleetLoop(context, { table, suspensions, usage, fleet, status, snapshot: () => tableLoop.snapshot }),
    status: createStatusLoop(context, status),
    suspensions: createSuspensionLoop(context, { suspensions, deferredCalls }),
    usage: createUsageLoop(context, { usage, table }),
  };

  const unsubscribers = [
    source.onChange((changedAt) => tableLoop.onSourceChange(changedAt)),
    leader.onChange(() => {
      if (!leader.isLeader) loseLeadership();
      wake('table');
    }),
    metrics.trackLeadership(leader),
    store.onConnectionChange((state) => {
      if (state === 'ready') for (const each of Object.values(loops)) each.onStoreReady?.();
    }),
  ];
  wake('table');
  return {
    idle: () => tableLoop.loop.idle(),
    problems: () => table.translation?.problems ?? source.snapshot().problems,
    translation: () => table.translation,
    async close() {
      for (const unsubscribe of unsubscribers) unsubscribe();
      for (const each of Object.values(loops)) each.close?.();
      await Promise.all(Object.values(loops).map(({ loop }) => loop.close()));
    },
  };
}
