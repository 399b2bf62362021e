import { PROPAGATION_BUCKETS_SECONDS, type ServiceEntry } from '@weir/model/data-plane';
import type { Metrics, Sample } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import { addStoreMetrics } from '@weir/store';
import type { DescriptorCounter } from '../limits/descriptor-count.ts';
import type { LeaseClient } from '../limits/lease-client.ts';
import { ACTIVE, CONNECTIONS, RECEIVED, REFUSAL_COLUMNS, REFUSAL_REASONS, SENT } from '../metering/counters.ts';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import type { UsageFlusher } from '../metering/usage-flusher.ts';
import type { ProxySettings } from '../supervisor/proxy-settings.ts';
import type { PropagationLatency } from '../supervisor/table/propagation.ts';
import type { TableDistributor } from '../supervisor/table/table-distributor.ts';
import type { WorkerPool } from '../supervisor/worker-pool.ts';
import type { HealthMonitor } from '../upstream/health/health-monitor.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';
import { addRequestMetrics } from './request-metrics.ts';
import { addWorkerMetrics } from './worker-metrics.ts';

// The metrics of a proxy. Counters are read from shared memory on each scrape. The number of series grows only with the
// number of Services and tenants.
type ServiceLabel = 'namespace' | 'service';
const SERVICE = ['namespace', 'service'] as const;

export interface ProxyMetricsSources {
  readonly settings: Pick<ProxySettings, 'version' | 'transport' | 'log' | 'store'>;
  readonly slots: SlotRegistry;
  readonly table: TableDistributor;
  readonly propagation: PropagationLatency;
  readonly health: HealthMonitor;
  readonly pool: WorkerPool;
  readonly descriptors: DescriptorCounter;
  readonly leases: LeaseClient;
  readonly flusher: Pick<UsageFlusher, 'backlog'>;
  /** Quantiles of the main thread's event loop delay in seconds, in the order of `DELAY_QUANTILES`. */
  readonly delaySeconds: Float64Array;
}

export function createProxyMetrics(sources: ProxyMetricsSources): Metrics {
  const { settings, slots, table, propagation, health, pool, descriptors, leases, flusher, delaySeconds } = sources;
  const { version, transport, log, store } = settings;
  const metrics = createMetrics({ log, processMetrics: 'on', openDescriptors: () => descriptors.open });
  const column = (index: number) => () => perSlot(slots, index);

  addStoreMetrics(metrics, () => store);
  addBacklogMetrics(metrics, { leases, flusher });
  metrics.collectGauge({
    name: 'weir_proxy_info',
    help: 'Always 1. The labels contain the version of the proxy and the transport that its workers use.',
    labels: ['version', 'transport'],
    collect: () => [{ labels: { version, transport }, value: 1 }],
  });
  metrics.collectCounter({
    name: 'weir_service_received_bytes_total',
    help: 'Bytes read from clients of the Service.',
    labels: SERVICE,
    collect: column(RECEIVED),
  });
  metrics.collectCounter({
    name: 'weir_service_sent_bytes_total',
    help: 'Bytes that clients of the Service have acknowledged (TCP) or that the kernel accepted for them (UDP, terminated TLS, WEIR_TRANSPORT=node).',
    labels: SERVICE,
    collect: column(SENT),
  });
  metrics.collectCounter({
    name: 'weir_service_connections_total',
    help: 'Connections and UDP flows that were routed to the Service.',
    labels: SERVICE,
    collect: column(CONNECTIONS),
  });
  metrics.collectGauge({
    name: 'weir_service_connections_active',
    help: 'Connections and UDP flows of the Service that are open now.',
    labels: SERVICE,
    collect: () => perService(slots, ACTIVE),
  });
  metrics.collectCounter({
    name: 'weir_service_refused_total',
    help: 'Connections and UDP flows that ended before a byte was relayed, and HTTP requests that the proxy answered itself, by reason; cut-off also counts open connections and flows that were reset.',
    labels: [...SERVICE, 'reason'],
    collect: () => refusals(slots),
  });
  addRequestMetrics(metrics, slots);
  metrics.collectGauge({
    name: 'weir_tenant_used',
    help: 'Connections and UDP flows that the tenant has open on this proxy, as counted for its limit.',
    labels: ['tenant', 'resource'],
    collect: () =>
      [...table.limits.openCounts()].map(({ tenant, connections }) => ({
        labels: { tenant, resource: 'connections' },
        value: connections,
      })),
  });
  metrics.collectGauge({
    name: 'weir_tenant_share',
    help: 'How much of the limit of the tenant this proxy may use now.',
    labels: ['tenant', 'resource'],
    collect: () =>
      [...leases.tenantShares()].map(({ tenant, resource, share }) => ({ labels: { tenant, resource }, value: share })),
  });
  metrics.collectGauge({
    name: 'weir_service_endpoints',
    help: 'Endpoints of one port of the Service (the port with the fewest ready endpoints), by state: ready, ejected (because of failed connections or checks) or draining (removed, with open connections).',
    labels: [...SERVICE, 'state'],
    collect: () => endpointSamples(table, health),
  });
  addHealthMetrics(metrics, health);
  metrics.collectGauge({
    name: 'weir_table_revision',
    help: 'Revision of the routing table that all workers have applied; 0 before the first table.',
    collect: () => [{ labels: {}, value: table.applied?.revision ?? 0 }],
  });
  const propagated = metrics.histogram({
    name: 'weir_table_propagation_seconds',
    help: 'Time from a change in the Kubernetes API (for endpoints, its trigger time) until all workers have applied it.',
    buckets: PROPAGATION_BUCKETS_SECONDS,
  });
  propagation.onSample((seconds) => propagated.observe({}, seconds));
  metrics.collectCounter({
    name: 'weir_unrouted_bytes_total',
    help: 'Bytes of connections that were not routed to any Service.',
    labels: ['direction'],
    collect: () => {
      const total = slots.unroutedTotal();
      return [
        { labels: { direction: 'received' }, value: total[RECEIVED] as number },
        { labels: { direction: 'sent' }, value: total[SENT] as number },
      ];
    },
  });
  metrics.collectGauge({
    name: 'weir_proxy_event_loop_delay_seconds',
    help: 'Event loop delay of the main thread, which sends heartbeats, applies cut-offs and checks endpoints, over the last 30 to 60 seconds.',
    labels: ['quantile'],
    collect: () =>
      DELAY_QUANTILES.map((quantile, index) => ({
        labels: { quantile: String(quantile) },
        value: delaySeconds[index] as number,
      })),
  });
  addWorkerMetrics(metrics, pool);
  return metrics;
}

/** The work that waits for Redis. */
function addBacklogMetrics(
  metrics: Metrics,
  { leases, flusher }: Pick<ProxyMetricsSources, 'leases' | 'flusher'>,
): void {
  metrics.collectGauge({
    name: 'weir_usage_backlog_points',
    help: 'Points of usage (one for each Service, tenant and minute) that the ledger in Redis has not acknowledged.',
    collect: () => [{ labels: {}, value: flusher.backlog.points }],
  });
  metrics.collectGauge({
    name: 'weir_usage_backlog_seconds',
    help: 'How long ago the ledger in Redis had all usage of this proxy; 0 if the ledger has all usage.',
    collect: () => [{ labels: {}, value: flusher.backlog.ageMs / 1000 }],
  });
  metrics.collectGauge({
    name: 'weir_lease_exchanges_pending',
    help: 'Shares of limits that this proxy should exchange with Redis now.',
    collect: () => [{ labels: {}, value: leases.pendingExchanges }],
  });
}

/**
 * Yields one sample per slot. A Service whose tenant changed has two slots; the metrics library adds up counter samples
 * with equal labels.
 */
function* perSlot(slots: SlotRegistry, column: number): Iterable<Sample<ServiceLabel>> {
  for (const { owner, counts } of slots.counts([column])) {
    yield { labels: { namespace: owner.namespace, service: owner.name }, value: counts[0] ?? 0 };
  }
}

/**
 * Returns one sample per Service. Adds up the slots of each Service here, because the metrics library does not add up
 * samples of gauges.
 */
function perService(slots: SlotRegistry, column: number): Iterable<Sample<ServiceLabel>> {
  const sums = new Map<string, { readonly labels: Sample<ServiceLabel>['labels']; value: number }>();
  for (const { labels, value } of perSlot(slots, column)) {
    const key = `${labels.namespace}/${labels.service}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { labels, value });
    else sum.value += value;
  }
  return sums.values();
}

/**
 * Yields the number of refusals for each Service and reason. Skips zeros, because there would be too many series with
 * one for every reason and Service. The metrics library adds up counter samples with equal labels.
 */
function* refusals(slots: SlotRegistry): Iterable<Sample<ServiceLabel | 'reason'>> {
  for (const { owner, counts } of slots.counts(REFUSAL_COLUMNS)) {
    for (const [index, reason] of REFUSAL_REASONS.entries()) {
      const value = counts[index] ?? 0;
      if (value > 0) yield { labels: { namespace: owner.namespace, service: owner.name, reason }, value };
    }
  }
}

export function addHealthMetrics(metrics: Metrics, health: HealthMonitor): void {
  metrics.collectCounter({
    name: 'weir_health_checks_total',
    help: 'Completed health checks of endpoints, by result.',
    labels: ['result'],
    collect: () => {
      const { good, bad } = health.checkCounts;
      return [
        { labels: { result: 'good' }, value: good },
        { labels: { result: 'bad' }, value: bad },
      ];
    },
  });
  metrics.collectCounter({
    name: 'weir_health_checks_stretched_total',
    help: 'Health checks that began late, because a proxy makes at most 500 a second (100 over TLS).',
    collect: () => [{ labels: {}, value: health.checkCounts.late }],
  });
}

type EndpointSample = Sample<'namespace' | 'service' | 'state'>;

/**
 * Yields samples of only one port per Service, the port with the fewest ready endpoints, because a Service works only
 * as well as its worst port.
 */
export function* endpointSamples({ matcher }: TableDistributor, health: HealthMonitor): Iterable<EndpointSample> {
  const worstPorts = new Map<
    string,
    { readonly service: ServiceEntry; readonly ready: number; readonly ejected: number }
  >();
  for (const route of matcher.routes.values()) {
    const { service, endpoints } = route;
    const ejected = health.countEjected(route);
    const ready = endpoints.length - ejected;
    const known = worstPorts.get(service.uid);
    if (known === undefined || known.ready > ready) worstPorts.set(service.uid, { service, ready, ejected });
  }
  for (const [uid, { service, ready, ejected }] of worstPorts) {
    const { namespace, name } = service;
    yield { labels: { namespace, service: name, state: 'ready' }, value: ready };
    yield { labels: { namespace, service: name, state: 'ejected' }, value: ejected };
    yield { labels: { namespace, service: name, state: 'draining' }, value: health.draining.countOf(uid) };
  }
}
