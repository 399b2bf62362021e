// What of the main thread serves clients: table, cut-offs, listeners and workers of one node, and what each is told of the
// others. What it has counted is brought elsewhere.
import { Sealer } from '@weir/runtime/sealing';
import { LimiterRegistry } from './admit/limit-book.ts';
import type { SlotRegistry } from './counters/slot-book.ts';
import { HealthMonitor } from './health/health-room.ts';
import { ListenerReconciler } from './listeners/listener-book.ts';
import { probePort } from './listeners/probe.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { Suspensions } from './table/cutoff-room.ts';
import { MaglevTables } from './table/maglev-room.ts';
import { PropagationLatency } from './table/propagation.ts';
import { TableDistributor } from './table/table-room.ts';
import { TlsKeyChecker } from './tls/key-faults.ts';
import { createMissingSecretWarning } from './tls/secret-advice.ts';
import { WorkerPool } from './workers/worker-pool.ts';
import { WORKER_ENTRY } from './workers/worker-thread.ts';

export interface ServingComponents {
  readonly table: TableDistributor;
  readonly propagation: PropagationLatency;
  readonly maglev: MaglevTables;
  readonly health: HealthMonitor;
  readonly suspensions: Suspensions;
  readonly listeners: ListenerReconciler;
  readonly pool: WorkerPool;
}

/** Nothing runs before the pool is started. `onChange`: what is applied or listened to may have changed. */
export function createServingComponents(
  settings: ProxySettings,
  slots: SlotRegistry,
  onChange: () => void,
): ServingComponents {
  const { node, clock, log, workers, workerEntry = WORKER_ENTRY, trustProxyProtocol, workerHeapMb } = settings;
  const { fleetSecret } = settings;
  const limits = new LimiterRegistry(workers);
  const sealer = fleetSecret && new Sealer(fleetSecret);
  const keyFaults = new TlsKeyChecker(sealer);
  const adviseSecret = createMissingSecretWarning({ fleetSecret, routes: () => table.matcher.routes, log });
  const propagation = new PropagationLatency(clock);
  const table = new TableDistributor({
    node,
    slots,
    limits,
    pool: () => pool,
    onRoutesChanged: (keys) => {
      maglev.onRoutesChanged(keys);
      health.onRoutesChanged(keys);
      listeners.reconcile(keys);
      adviseSecret(keys);
    },
    onApplied: (changedAt) => propagation.record(changedAt),
  });
  const maglev = new MaglevTables({
    routes: table.matcher.routes,
    clock,
    post: (order) => pool.post(order),
  });
  const health = new HealthMonitor({
    routes: table.matcher.routes,
    clock,
    post: (order) => pool.post(order),
    onChange,
  });
  const suspensions = new Suspensions({
    pool: () => pool,
    now: () => clock.now(),
    onChange: (inForce) => {
      listeners.setSuspensions(inForce);
      listeners.start();
    },
  });
  const listeners = new ListenerReconciler({
    matcher: table.matcher,
    isPartial: () => table.isPartial,
    probe: probePort,
    post: (order) => pool.post(order),
    mark: () => pool.mark(),
    reached: () => pool.reached,
    workers: () => pool.ids,
    clock,
    faultOf: (route) => keyFaults.problemFor(route),
    onChange,
  });
  const pool: WorkerPool = new WorkerPool({
    count: workers,
    node,
    entry: workerEntry,
    trustProxyProtocol,
    fleetSecret,
    slots,
    limits,
    heapMb: workerHeapMb,
    clock,
    log: log.child({ part: 'workers' }),
    commandsForNewWorker: (worker) => [
      table.commandForNewWorker(),
      ...maglev.commandsForNewWorker(),
      ...health.commandsForNewWorker(),
      suspensions.commandForNewWorker(),
      ...listeners.commandsForNewWorker(worker),
    ],
    onListening: (worker, door) => listeners.onListening(worker, door),
    onListenFailed: (worker, door, code) => listeners.onListenFailed(worker, door, code),
    onWorkerEnd: (worker) => {
      listeners.onWorkerEnd(worker);
      health.draining.removeWorker(worker);
    },
    onDrainingEndpoints: (worker, endpoints) => health.draining.update(worker, endpoints),
    onConnectReports: (reports) => health.recordConnectReports(reports),
    onReached: () => {
      table.onMarkReached(pool.reached);
      suspensions.onMarkReached(pool.reached);
      onChange();
    },
  });
  return { table, propagation, maglev, health, suspensions, listeners, pool };
}
