// Metrics of the worker threads. The label is the seat, 0 to N-1: a worker that is replaced begins no new series.
import type { Metrics, Sample } from '@weir/runtime';
import type { WorkerPool } from '../supervisor/worker-pool.ts';
import type { WorkerSlotView } from '../supervisor/worker-slots.ts';

type Pool = Pick<WorkerPool, 'slotViews' | 'localFailures'>;
const WORKER = ['worker'] as const;

export function addWorkerMetrics(metrics: Metrics, pool: Pool): void {
  const each = (value: (seat: WorkerSlotView) => number | null | undefined) => (): Sample<'worker'>[] =>
    pool.slotViews.flatMap((seat) => {
      const found = value(seat);
      return found === null || found === undefined ? [] : [{ labels: { worker: String(seat.worker) }, value: found }];
    });
  metrics.collectCounter({
    name: 'weir_worker_connections_total',
    help: 'Connections that the worker has accepted for Services.',
    labels: WORKER,
    collect: each((seat) => seat.connections),
  });
  metrics.collectGauge({
    name: 'weir_worker_connections_active',
    help: 'Connections of the worker open now.',
    labels: WORKER,
    collect: each((seat) => seat.active),
  });
  metrics.collectCounter({
    name: 'weir_worker_ends_total',
    help: 'Workers that ended by a fault and were replaced.',
    labels: WORKER,
    collect: each((seat) => seat.ends),
  });
  metrics.collectCounter({
    name: 'weir_worker_cpu_seconds_total',
    help: 'CPU time of the worker thread.',
    labels: WORKER,
    collect: each((seat) => seat.cpuSeconds),
  });
  metrics.collectGauge({
    name: 'weir_worker_heap_bytes',
    help: 'Heap of the worker in use.',
    labels: WORKER,
    collect: each((seat) => seat.vitals?.heapBytes),
  });
  metrics.collectGauge({
    name: 'weir_worker_event_loop_utilization',
    help: 'Part of the last second in which the event loop of the worker was busy.',
    labels: WORKER,
    collect: each((seat) => seat.vitals?.utilization),
  });
  metrics.collectGauge({
    name: 'weir_worker_event_loop_delay_seconds',
    help: 'By how much events of the worker came too late within the last half to whole minute.',
    labels: [...WORKER, 'quantile'],
    collect: () => pool.slotViews.flatMap(delaySamples),
  });
  metrics.collectCounter({
    name: 'weir_connect_local_failures_total',
    help: 'Connects to endpoints that this host could not make: no local port, no descriptor, no memory, forbidden.',
    labels: ['code'],
    collect: () => Object.entries(pool.localFailures).map(([code, value]) => ({ labels: { code }, value })),
  });
}

function delaySamples({ worker, vitals }: WorkerSlotView): Sample<'worker' | 'quantile'>[] {
  return (vitals?.delaySeconds ?? []).map(({ quantile, value }) => ({
    labels: { worker: String(worker), quantile: String(quantile) },
    value,
  }));
}
