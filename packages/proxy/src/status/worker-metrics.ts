// Metrics of the worker threads. The label `worker` is the worker slot, 0 to N-1, so that a replaced worker and its
// replacement have the same series.
import type { Metrics, Sample } from '@weir/runtime';
import type { WorkerPool } from '../supervisor/worker-pool.ts';
import type { WorkerSlotView } from '../supervisor/worker-slots.ts';

type Pool = Pick<WorkerPool, 'slotViews' | 'localFailures'>;
const WORKER = ['worker'] as const;

export function addWorkerMetrics(metrics: Metrics, pool: Pool): void {
  const each = (value: (slot: WorkerSlotView) => number | null | undefined) => (): Sample<'worker'>[] =>
    pool.slotViews.flatMap((slot) => {
      const found = value(slot);
      return found === null || found === undefined ? [] : [{ labels: { worker: String(slot.worker) }, value: found }];
    });
  metrics.collectCounter({
    name: 'weir_worker_connections_total',
    help: 'Connections that the worker has routed to Services.',
    labels: WORKER,
    collect: each((slot) => slot.connections),
  });
  metrics.collectGauge({
    name: 'weir_worker_connections_active',
    help: 'Connections of the worker that are open now.',
    labels: WORKER,
    collect: each((slot) => slot.active),
  });
  metrics.collectCounter({
    name: 'weir_worker_ends_total',
    help: 'Workers that failed and were replaced.',
    labels: WORKER,
    collect: each((slot) => slot.ends),
  });
  metrics.collectCounter({
    name: 'weir_worker_cpu_seconds_total',
    help: 'CPU time of the worker thread.',
    labels: WORKER,
    collect: each((slot) => slot.cpuSeconds),
  });
  metrics.collectCounter({
    name: 'weir_worker_udp_datagrams_dropped_total',
    help: 'Datagrams that the kernel dropped at the UDP listeners of the worker because a receive buffer was full; always 0 with WEIR_TRANSPORT=node.',
    labels: WORKER,
    collect: each((slot) => slot.droppedDatagrams),
  });
  metrics.collectGauge({
    name: 'weir_worker_heap_bytes',
    help: 'Used heap of the worker.',
    labels: WORKER,
    collect: each((slot) => slot.vitals?.heapBytes),
  });
  metrics.collectGauge({
    name: 'weir_worker_event_loop_utilization',
    help: 'Share of the last second (0 to 1) in which the event loop of the worker was busy.',
    labels: WORKER,
    collect: each((slot) => slot.vitals?.utilization),
  });
  metrics.collectGauge({
    name: 'weir_worker_event_loop_delay_seconds',
    help: 'Event loop delay of the worker over the last 30 to 60 seconds.',
    labels: [...WORKER, 'quantile'],
    collect: () => pool.slotViews.flatMap(delaySamples),
  });
  metrics.collectCounter({
    name: 'weir_connect_local_failures_total',
    help: 'Failed attempts to connect to an endpoint for which this host is the cause (no local port, descriptor, memory or permission), by errno.',
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
