import { monthOf, type TenantView, tenantViewsFor } from '@weir/model';
import { errorMessage, Health, type HealthReport, type Metrics, type Sample } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RouteContext } from './route-context.ts';
import { optionalProperties } from './schemas.ts';

export function monitoringRoutes(app: FastifyInstance, parts: RouteContext): void {
  const { watch, log } = parts;
  const health = new Health();
  health.add('store', 'ready', () =>
    watch.isReady ? undefined : 'no whole routing table, or no heartbeats, could be read from the store',
  );
  const metrics = createMetrics({ log });
  const tenants = tenantMetrics(metrics, parts);
  const answering = (reply: FastifyReply, isGood: boolean, { reasons }: HealthReport): FastifyReply =>
    reply.code(isGood ? 200 : 503).send({ ok: isGood, reasons });

  app.get(
    '/openapi.json',
    { config: { access: 'anybody' }, schema: { hide: true, querystring: optionalProperties() } },
    async () => app.swagger(),
  );

  app.get(
    '/healthz',
    {
      config: { access: 'anybody' },
      schema: { summary: 'Only a restart helps when this fails', querystring: optionalProperties() },
    },
    (_, reply) => {
      const report = health.report();
      return answering(reply, report.live, report);
    },
  );

  app.get(
    '/readyz',
    {
      config: { access: 'anybody' },
      schema: { summary: 'Whether answers are whole', querystring: optionalProperties() },
    },
    (_, reply) => {
      const report = health.report();
      return answering(reply, report.ready, report);
    },
  );

  // Labels name every tenant.
  app.get(
    '/metrics',
    { config: { access: 'everything' }, schema: { summary: 'For Prometheus', querystring: optionalProperties() } },
    async (_, reply) => {
      await tenants.refresh();
      return reply.type(metrics.contentType).send(await metrics.render());
    },
  );
}

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
