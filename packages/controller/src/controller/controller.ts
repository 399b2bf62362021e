import { type FleetSettings, type Problem, type TranslatorOutput, tenancyFor } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { Store } from '@weir/store';
import { createFleetLoop } from '../fleet/fleet-loop.ts';
import { FleetReconciler } from '../fleet/fleet-reconciler.ts';
import { LeaseReaper } from '../fleet/lease-reaper.ts';
import { ALWAYS_LEADER, type Leadership, leaderOnlyStore } from '../leader/leadership.ts';
import type { RuleReporter } from '../rules/rule-events.ts';
import { createRuleLoop, RuleReconciler } from '../rules/rule-reconciler.ts';
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
  /** Reports whether this controller leads. Default: always, because there is no other controller. */
  readonly leader?: Leadership;
  /** Writes the status of Services. By default no status is written and no heartbeats are read. */
  readonly status?: StatusSink;
  /** Keeps a copy of the usage, from which a wiped store is restored. By default only the usage that this process remembers is restored. */
  readonly archive?: UsageArchive;
  /**
   * Writes Suspension objects. By default expired Suspensions are not deleted, and a suspension made in the store does not become an
   * object.
   */
  readonly suspensions?: SuspensionObjectWriter;
  /** Shows users what rules of TenantPolicies do. By default only the log shows it. */
  readonly ruleReporter?: RuleReporter;
  /** The metrics to update. By default the metrics are not exported. */
  readonly metrics?: ControllerMetrics;
}

export interface Controller {
  /** Resolves once all changes that the source has reported so far are published, or once another controller leads. */
  idle(): Promise<void>;
  /** Returns the problems found by the last translation. Before the first translation, returns the problems of the source. */
  problems(): readonly Problem[];
  /** Returns the last translation. Undefined before the first translation, and while another controller leads. */
  translation(): TranslatorOutput | undefined;
  close(): Promise<void>;
}

/** Follows the source, publishes the routing table to the store, and reports status. `close` leaves the source and the store open. */
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
    leases: store.leases,
    heartbeats: store.heartbeats,
    archive: options.archive,
    readTenants() {
      const { membershipOf } = tenancyFor({ ...source.snapshot(), settings });
      return (namespace) => {
        const membership = membershipOf(namespace);
        return membership.kind === 'tenant' ? membership.tenant.name : undefined;
      };
    },
    clock,
    log: logFor('usage'),
    onUsage: (usageTable, rows) => metrics.setTenants(usageTable, rows),
  });
  const rules = new RuleReconciler({
    source,
    settings,
    store: { usage: store.usage, heartbeats: store.heartbeats, suspensions: leaderStore.suspensions },
    reporter: options.ruleReporter,
    clock,
    log: logFor('rules'),
    publishedTable: () => table.publishedTable,
  });
  const leaseReaper = new LeaseReaper({ leases: store.leases, clock, log: logFor('leases') });
  const status = options.status && new StatusReconciler({ sink: options.status, onStatusChange: () => wake('status') });
  const fleet =
    status &&
    new FleetReconciler({
      heartbeats: store.heartbeats,
      clock,
      log: logFor('fleet'),
      onHeartbeats: (heartbeats) => leaseReaper.onHeartbeats(heartbeats),
      onViews: (views) => status.setDesired({ kind: 'decided', views }),
    });

  const loseLeadership = (): void => {
    for (const each of Object.values(loops)) each.onLeadershipLost?.();
  };
  const tableLoop = new TableLoop(context, { table, suspensions, rules, fleet, loseLeadership });
  const loops: { readonly [N in ReconcileLoopName]: ReconcileLoop } = {
    table: tableLoop,
    fleet: createFleetLoop(context, { table, suspensions, usage, fleet, status, snapshot: () => tableLoop.snapshot }),
    status: createStatusLoop(context, status),
    suspensions: createSuspensionLoop(context, { suspensions, deferredCalls }),
    usage: createUsageLoop(context, { usage, table }),
    rules: createRuleLoop(context, { rules, table: () => table.translation?.table }),
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
  metrics.trackTranslation(() => table.translation);
  metrics.trackRules(() => rules.records);
  wake('table');
  return {
    idle: () => tableLoop.loop.idle(),
    problems: () => table.translation?.problems ?? source.snapshot().problems,
    translation: () => table.translation,
    async close() {
      for (const unsubscribe of unsubscribers) unsubscribe();
      for (const each of Object.values(loops)) each.close?.();
      await Promise.all([...Object.values(loops).map(({ loop }) => loop.close()), leaseReaper.close()]);
    },
  };
}
