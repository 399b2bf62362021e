import { type Clock, wait } from '@weir/runtime';
import { Sealer } from '@weir/runtime/sealing';
import { LimiterRegistry } from '../limits/limiter-registry.ts';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import { createMissingSecretWarning, TlsKeyChecker } from '../status/tls-key-checks.ts';
import { HealthMonitor } from '../upstream/health/health-monitor.ts';
import { ListenerReconciler } from './listeners/listener-reconciler.ts';
import { probePort } from './listeners/port-probe.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { MaglevTables } from './table/maglev-tables.ts';
import { PropagationLatency } from './table/propagation.ts';
import { Suspensions } from './table/suspensions.ts';
import { TableDistributor } from './table/table-distributor.ts';
import { WorkerPool } from './worker-pool.ts';
import { WORKER_ENTRY } from './worker-thread.ts';

// What of the main thread serves clients: table, cut-offs, listeners and workers of one node, and what each is told of the
// others. What it has counted is brought elsewhere.
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
    onPassiveHealth: (reports) => health.recordPassiveHealth(reports),
    onReached: () => {
      table.onMarkReached(pool.reached);
      suspensions.onMarkReached(pool.reached);
      onChange();
    },
  });
  return { table, propagation, maglev, health, suspensions, listeners, pool };
}

const DRAIN_POLL_INTERVAL_MS = 50;
/** For workers to close listeners, and to reset what is left. A worker that takes longer is dead. */
const COMMAND_TIMEOUT_MS = 3_000;

export interface DrainOptions {
  readonly pool: WorkerPool;
  readonly slots: SlotRegistry;
  readonly clock: Clock;
  readonly drainMs: number;
  /** Aborted: waits no longer. */
  readonly abort: AbortSignal;
}

/** After the listeners were closed: waits for the open connections, and resets those that are left. */
export async function drainConnections({ pool, slots, clock, drainMs, abort }: DrainOptions): Promise<void> {
  const until = async (isDone: () => boolean, limitMs: number, signal?: AbortSignal): Promise<void> => {
    const end = clock.monotonic() + limitMs;
    while (!isDone() && clock.monotonic() < end && signal?.aborted !== true) {
      await wait(clock, Math.min(DRAIN_POLL_INTERVAL_MS, end - clock.monotonic()), signal).catch(() => undefined);
    }
  };
  // What was accepted until the last listener closed counts, too.
  const closed = pool.mark();
  await until(() => pool.reached === 0 || pool.reached >= closed, COMMAND_TIMEOUT_MS);
  await until(() => slots.activeConnections() === 0, drainMs, abort);
  if (slots.activeConnections() === 0) return;
  pool.post({ kind: 'terminate', outcome: 'drained' });
  await until(() => slots.activeConnections() === 0, COMMAND_TIMEOUT_MS);
}
