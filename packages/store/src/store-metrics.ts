import type { Metrics } from '@weir/runtime';
import type { Store } from './contract.ts';

/** Registers `weir_store_connected`. `current` returns undefined until the store is open. */
export function addStoreMetrics(metrics: Metrics, current: () => Pick<Store, 'connection'> | undefined): void {
  metrics.collectGauge({
    name: 'weir_store_connected',
    help: '1 while the process reaches its store (Redis), otherwise 0.',
    collect: () => [{ labels: {}, value: current()?.connection === 'ready' ? 1 : 0 }],
  });
}
