import type { Metrics } from '@weir/runtime';
import { CALL_BUCKETS_SECONDS } from './call-statistics.ts';
import type { Store } from './contract.ts';

/** Registers the metrics of a process about its store. `current` returns undefined until the store is open. */
export function addStoreMetrics(
  metrics: Metrics,
  current: () => Pick<Store, 'connection' | 'statistics'> | undefined,
): void {
  metrics.collectGauge({
    name: 'weir_store_connected',
    help: '1 while the process reaches its store (Redis), otherwise 0.',
    collect: () => [{ labels: {}, value: current()?.connection === 'ready' ? 1 : 0 }],
  });
  metrics.collectCounter({
    name: 'weir_store_reconnects_total',
    help: 'How often the process reached Redis again after it had lost Redis.',
    collect: () => [{ labels: {}, value: current()?.statistics?.reconnects ?? 0 }],
  });
  metrics.collectHistogram({
    name: 'weir_store_call_duration_seconds',
    help: 'Time from a call to Redis until the reply or the failure, by Lua script, or by part of the store for plain commands.',
    labels: ['call'],
    buckets: CALL_BUCKETS_SECONDS,
    collect: () => current()?.statistics?.durations() ?? [],
  });
  metrics.collectCounter({
    name: 'weir_store_call_errors_total',
    help: 'Failed calls to Redis. AWAY: no reply in time, or the connection was lost; REFUSED: Redis refused the call, because it is full or the Redis user lacks a right.',
    labels: ['code'],
    collect: () => current()?.statistics?.errors() ?? [],
  });
}
