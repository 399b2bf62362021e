// What Prometheus sees of a proxy: read from shared memory when it asks. Series grow with Services only.
import { PROPAGATION_BUCKETS } from '@weir/model';
import { createMetrics, type Logger, type Metrics, type Sample } from '@weir/runtime';
import { ACTIVE, CONNECTIONS, outcomeColumn, RECEIVED, SENT } from '../counters/columns.ts';
import { REFUSALS } from '../counters/outcome.ts';
import type { SlotBook } from '../counters/slot-book.ts';
import type { HealthRoom } from '../health/health-room.ts';
import type { Propagation } from '../table/propagation.ts';
import type { TableRoom } from '../table/table-room.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { addHealthMetrics, endpointSamples } from './health-metrics.ts';
import { addWorkerMetrics } from './worker-metrics.ts';

type ServiceLabel = 'namespace' | 'service';
const SERVICE = ['namespace', 'service'] as const;

export function createProxyMetrics(parts: {
  readonly slots: SlotBook;
  readonly tables: TableRoom;
  readonly propagation: Propagation;
  readonly health: HealthRoom;
  readonly pool: WorkerPool;
  readonly log: Logger;
}): Metrics {
  const { slots, tables, propagation, health, pool, log } = parts;
  const metrics = createMetrics({ log, processMetrics: 'on' });
  const totals = duringThisTurn(() => totalsPerService(slots));
  const column = (index: number) => (): Sample<ServiceLabel>[] =>
    totals().map(({ labels, total }) => ({ labels, value: total[index] as number }));

  metrics.collectCounter({
    name: 'weir_service_received_bytes_total',
    help: 'Bytes read from clients of the Service.',
    labels: SERVICE,
    collect: column(RECEIVED),
  });
  metrics.collectCounter({
    name: 'weir_service_sent_bytes_total',
    help: 'Bytes that the kernel accepted for clients of the Service.',
    labels: SERVICE,
    collect: column(SENT),
  });
  metrics.collectCounter({
    name: 'weir_service_connections_total',
    help: 'Connections that were given to the Service.',
    labels: SERVICE,
    collect: column(CONNECTIONS),
  });
  metrics.collectGauge({
    name: 'weir_service_connections_active',
    help: 'Connections open now.',
    labels: SERVICE,
    collect: column(ACTIVE),
  });
  metrics.collectCounter({
    name: 'weir_service_refused_total',
    help: 'Connections and UDP flows that ended before a byte was relayed; of cut-off those that were open, too.',
    labels: [...SERVICE, 'reason'],
    collect: () =>
      REFUSALS.flatMap((reason) =>
        column(outcomeColumn(reason))()
          .filter(({ value }) => value > 0)
          .map(({ labels, value }) => ({ labels: { ...labels, reason }, value })),
      ),
  });
  metrics.collectGauge({
    name: 'weir_tenant_used',
    help: 'Connections and UDP flows that a tenant has open on this proxy, as its limit counts them.',
    labels: ['tenant', 'resource'],
    collect: () =>
      [...tables.limits.used()].map(({ tenant, connections }) => ({
        labels: { tenant, resource: 'connections' },
        value: connections,
      })),
  });
  metrics.collectGauge({
    name: 'weir_service_endpoints',
    help: 'Of the port of the Service that has the fewest: endpoints used here (ready), left out because they do not work (ejected), gone with connections open (draining).',
    labels: [...SERVICE, 'state'],
    collect: () => endpointSamples(tables, health),
  });
  addHealthMetrics(metrics, health);
  metrics.collectGauge({
    name: 'weir_table_revision',
    help: 'Revision of the routing table that all workers have applied; 0 before the first.',
    collect: () => [{ labels: {}, value: tables.applied?.revision ?? 0 }],
  });
  const propagated = metrics.histogram({
    name: 'weir_table_propagation_seconds',
    help: 'From a change in the API (the trigger of an EndpointSlice where it says one) until all workers have applied it.',
    buckets: PROPAGATION_BUCKETS,
  });
  propagation.onPropagation((seconds) => propagated.observe({}, seconds));
  metrics.collectCounter({
    name: 'weir_unrouted_bytes_total',
    help: 'Bytes that reached no Service.',
    labels: ['direction'],
    collect: () => {
      const total = slots.unrouted();
      return [
        { labels: { direction: 'received' }, value: total[RECEIVED] as number },
        { labels: { direction: 'sent' }, value: total[SENT] as number },
      ];
    },
  });
  addWorkerMetrics(metrics, pool);
  return metrics;
}

interface ServiceTotal {
  readonly labels: Sample<ServiceLabel>['labels'];
  readonly total: Float64Array;
}

/** A Service that changed its tenant is counted in two slots and shown as one. */
function totalsPerService(slots: SlotBook): ServiceTotal[] {
  const sums = new Map<string, ServiceTotal>();
  for (const { owner, total } of slots.totals()) {
    const key = `${owner.namespace}/${owner.name}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { labels: { namespace: owner.namespace, service: owner.name }, total });
    else for (const [column, value] of total.entries()) sum.total[column] = (sum.total[column] as number) + value;
  }
  return [...sums.values()];
}

/** What is made is kept until this turn of the event loop is over: all metrics of one scrape are collected in one. */
function duringThisTurn<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    if (made === undefined) {
      made = { value: make() };
      queueMicrotask(() => {
        made = undefined;
      });
    }
    return made.value;
  };
}
