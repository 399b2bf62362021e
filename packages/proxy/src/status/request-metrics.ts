import { CODE_CLASSES } from '@weir/model/data-plane';
import type { HistogramSample, Metrics, Sample } from '@weir/runtime';
import {
  ACCESS_LOG_DROPPED,
  CODE_CLASS_COLUMNS,
  DURATION_BUCKETS_MS,
  ENDPOINT_DURATION,
  histogramColumns,
  REQUEST_DURATION,
} from '../metering/counters.ts';
import type { SlotRegistry } from '../metering/slot-registry.ts';

type ServiceLabel = 'namespace' | 'service';
const SERVICE = ['namespace', 'service'] as const;
const BUCKETS_SECONDS = DURATION_BUCKETS_MS.map((bound) => bound / 1_000);

/**
 * Adds the metrics of HTTP requests. A Service has no series before its first request, because most Services may be
 * TCP.
 */
export function addRequestMetrics(metrics: Metrics, slots: SlotRegistry): void {
  metrics.collectCounter({
    name: 'weir_service_requests_total',
    help: 'HTTP requests, by class of the status code that the client received; none: the request ended without an answer.',
    labels: [...SERVICE, 'code_class'],
    collect: () => requests(slots),
  });
  metrics.collectHistogram({
    name: 'weir_service_request_duration_seconds',
    help: 'Time from the head of an HTTP request to the last byte of its answer. Requests without a complete answer are not included.',
    labels: SERVICE,
    buckets: BUCKETS_SECONDS,
    collect: () => durations(slots, REQUEST_DURATION),
  });
  metrics.collectHistogram({
    name: 'weir_service_endpoint_duration_seconds',
    help: 'Time from sending an HTTP request to the endpoint until the head of its answer. Answers that the proxy made are not included.',
    labels: SERVICE,
    buckets: BUCKETS_SECONDS,
    collect: () => durations(slots, ENDPOINT_DURATION),
  });
  metrics.collectCounter({
    name: 'weir_access_log_dropped_total',
    help: 'Lines of the access log of the Service that were dropped, because its tenant logs more than the proxy can write.',
    labels: SERVICE,
    collect: () => droppedLines(slots),
  });
}

function* droppedLines(slots: SlotRegistry): Iterable<Sample<ServiceLabel>> {
  for (const { owner, counts } of slots.counts([ACCESS_LOG_DROPPED])) {
    const value = counts[0] ?? 0;
    if (value > 0) yield { labels: { namespace: owner.namespace, service: owner.name }, value };
  }
}

function* requests(slots: SlotRegistry): Iterable<Sample<ServiceLabel | 'code_class'>> {
  for (const { owner, counts } of slots.counts(CODE_CLASS_COLUMNS)) {
    if (counts.every((count) => count === 0)) continue;
    for (const [index, codeClass] of CODE_CLASSES.entries()) {
      const labels = { namespace: owner.namespace, service: owner.name, code_class: codeClass };
      yield { labels, value: counts[index] ?? 0 };
    }
  }
}

function* durations(slots: SlotRegistry, firstColumn: number): Iterable<HistogramSample<ServiceLabel>> {
  for (const { owner, counts } of slots.counts(histogramColumns(firstColumn))) {
    if (counts.every((count) => count === 0)) continue;
    const labels = { namespace: owner.namespace, service: owner.name };
    yield { labels, counts: counts.slice(0, -1), sum: (counts.at(-1) ?? 0) / 1_000_000 };
  }
}
