// What of the main thread serves clients: table, cut-offs, listeners and workers of one node, and what each is told of the
// others. What it has counted is brought elsewhere.
import { Sealer } from '@weir/runtime/sealing';
import { LimitBook } from './admit/limit-book.ts';
import type { SlotBook } from './counters/slot-book.ts';
import { HealthRoom } from './health/health-room.ts';
import { ListenerBook } from './listeners/listener-book.ts';
import { probe } from './listeners/probe.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { CutoffRoom } from './table/cutoff-room.ts';
import { MaglevRoom } from './table/maglev-room.ts';
import { Propagation } from './table/propagation.ts';
import { TableRoom } from './table/table-room.ts';
import { KeyFaults } from './tls/key-faults.ts';
import { createSecretAdvice } from './tls/secret-advice.ts';
import { WorkerPool } from './workers/worker-pool.ts';
import { WORKER_ENTRY } from './workers/worker-thread.ts';

export interface ServingSide {
  readonly tables: TableRoom;
  readonly propagation: Propagation;
  readonly maglev: MaglevRoom;
  readonly health: HealthRoom;
  readonly cutoffs: CutoffRoom;
  readonly listeners: ListenerBook;
  readonly pool: WorkerPool;
}

/** Nothing runs before the pool is started. `onChange`: what is applied or listened to may have changed. */
export function createServingSide(settings: ProxySettings, slots: SlotBook, onChange: () => void): ServingSide {
  const { node, clock, log, workers, workerEntry = WORKER_ENTRY, trustProxyProtocol, workerHeapMb } = settings;
  const { fleetSecret } = settings;
  const limits = new LimitBook(workers);
  const sealer = fleetSecret && new Sealer(fleetSecret);
  const keyFaults = new KeyFaults(sealer);
  const adviseSecret = createSecretAdvice({ fleetSecret, routes: () => tables.matcher.routes, log });
  const propagation = new Propagation(clock);
  const tables = new TableRoom({
    node,
    slots,
    limits,
    pool: () => pool,
    onRoutes: (keys) => {
      maglev.settle(keys);
      health.settle(keys);
      listeners.settle(keys);
      adviseSecret(keys);
    },
    onPropagated: (changedAt) => propagation.arrived(changedAt),
  });
  const maglev = new MaglevRoom({
    routes: tables.matcher.routes,
    clock,
    post: (order) => pool.post(order),
  });
  const health = new HealthRoom({
    routes: tables.matcher.routes,
    clock,
    post: (order) => pool.post(order),
    onChange,
  });
  const cutoffs = new CutoffRoom({
    pool: () => pool,
    now: () => clock.now(),
    onCutoffs: (inForce) => {
      listeners.cutOff(inForce);
      listeners.begin();
    },
  });
  const listeners = new ListenerBook({
    matcher: tables.matcher,
    isPartial: () => tables.isPartial,
    probe,
    post: (order) => pool.post(order),
    mark: () => pool.mark(),
    reached: () => pool.reached,
    workers: () => pool.ids,
    clock,
    faultOf: (route) => keyFaults.of(route),
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
    welcome: (worker) => [
      tables.welcome(),
      ...maglev.welcome(),
      ...health.welcome(),
      cutoffs.welcome(),
      ...listeners.ordersFor(worker),
    ],
    onListening: (worker, door) => listeners.onListening(worker, door),
    onListenFailed: (worker, door, code) => listeners.onListenFailed(worker, door, code),
    onWorkerEnd: (worker) => {
      listeners.onWorkerEnd(worker);
      health.departed.forget(worker);
    },
    onDeparted: (worker, endpoints) => health.departed.take(worker, endpoints),
    onConnects: (reports) => health.hear(reports),
    onReached: () => {
      tables.reached(pool.reached);
      cutoffs.reached(pool.reached);
      onChange();
    },
  });
  return { tables, propagation, maglev, health, cutoffs, listeners, pool };
}
