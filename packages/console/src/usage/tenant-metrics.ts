import { monthOf, type TenantView, tenantViewsFor } from '@weir/model';
import { errorMessage, type Metrics, type Sample } from '@weir/runtime';
import type { RouteContext } from '../api/console-parts.ts';

type TenantLabels = 'tenant' | 'resource';

/** `weir_tenant_limit`, `weir_tenant_used` and `weir_table_revision`; `refresh` reads the ledger before they are rendered. */
export function tenantMetrics(
  metrics: Metrics,
  { watch, store, clock, log }: RouteContext,
): { refresh(): Promise<void> } {
  let views: readonly TenantView[] = [];
  metrics.collectGauge<TenantLabels>({
    name: 'weir_tenant_limit',
    help: 'What a tenant may have, by resource; without a series it is unlimited.',
    labels: ['tenant', 'resource'],
    collect: () => views.flatMap((view) => samplesFor(view.name, view.limits)),
  });
  metrics.collectGauge<TenantLabels>({
    name: 'weir_tenant_used',
    help: 'What a tenant has of what is limited, by resource; traffic in bytes of this month.',
    labels: ['tenant', 'resource'],
    collect: () =>
      views.flatMap(({ name, used: { services, ports, trafficThisMonth } }) =>
        samplesFor(name, { services, ports, trafficPerMonth: trafficThisMonth }),
      ),
  });
  metrics.collectGauge({
    name: 'weir_table_revision',
    help: 'Revision of the routing table that this process has.',
    collect: () => (watch.position === null ? [] : [{ labels: {}, value: watch.position.revision }]),
  });
  return {
    async refresh() {
      views = [];
      if (watch.table === undefined) return;
      try {
        views = tenantViewsFor(watch.fleet(), await store.usage.rows(monthOf(clock.now())));
      } catch (error) {
        log.debug({ reason: errorMessage(error) }, 'the ledger cannot be read for metrics');
      }
    },
  };
}

function samplesFor(tenant: string, amounts: object): Sample<TenantLabels>[] {
  return Object.entries(amounts).map(([resource, value]) => ({ labels: { tenant, resource }, value: Number(value) }));
}
