import { monthOf, type TenantView, tenantViewsFor } from '@weir/model';
import { errorMessage, Health, type HealthReport, type Metrics, type Sample } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RouteContext } from './route-context.ts';
import { optionalProperties } from './schemas.ts';

export function monitoringRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, log } = context;
  const health = new Health();
  health.add('store', 'ready', () =>
    watch.isReady
      ? undefined
      : 'the console has no complete routing table yet, or cannot read the heartbeats from the store',
  );
  const metrics = createMetrics({ log });
  const tenants = tenantMetrics(metrics, context);
  const sendReport = (reply: FastifyReply, isOk: boolean, { reasons }: HealthReport): FastifyReply =>
    reply.code(isOk ? 200 : 503).send({ ok: isOk, reasons });

  app.get(
    '/openapi.json',
    { config: { access: 'public' }, schema: { hide: true, querystring: optionalProperties() } },
    async () => app.swagger(),
  );

  app.get(
    '/healthz',
    {
      config: { access: 'public' },
      schema: {
        summary: 'Whether the process works; restart the process if this check fails',
        querystring: optionalProperties(),
      },
    },
    (_, reply) => {
      const report = health.report();
      return sendReport(reply, report.live, report);
    },
  );

  app.get(
    '/readyz',
    {
      config: { access: 'public' },
      schema: { summary: 'Whether the console has complete data', querystring: optionalProperties() },
    },
    (_, reply) => {
      const report = health.report();
      return sendReport(reply, report.ready, report);
    },
  );

  // Only users who may view the whole fleet get the metrics, because the labels name every tenant.
  app.get(
    '/metrics',
    { config: { access: 'fleet' }, schema: { summary: 'For Prometheus', querystring: optionalProperties() } },
    async (_, reply) => {
      await tenants.refresh();
      return reply.type(metrics.contentType).send(await metrics.render());
    },
  );
}

type TenantLabels = 'tenant' | 'resource';

/**
 * Registers `weir_tenant_limit`, `weir_tenant_used` and `weir_table_revision`. Call `refresh` before you render the metrics, because only
 * `refresh` reads the ledger.
 */
export function tenantMetrics(
  metrics: Metrics,
  { watch, store, clock, log }: RouteContext,
): { refresh(): Promise<void> } {
  let views: readonly TenantView[] = [];
  metrics.collectGauge<TenantLabels>({
    name: 'weir_tenant_limit',
    help: 'Limit of a tenant by resource; a resource without a series is unlimited.',
    labels: ['tenant', 'resource'],
    collect: () => views.flatMap((view) => samplesFor(view.name, view.limits)),
  });
  metrics.collectGauge<TenantLabels>({
    name: 'weir_tenant_used',
    help: 'Use of a tenant by resource; traffic is the number of bytes of this month.',
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
        log.debug({ reason: errorMessage(error) }, 'failed to read the ledger; omitting tenant metrics');
      }
    },
  };
}

function samplesFor(tenant: string, amounts: object): Sample<TenantLabels>[] {
  return Object.entries(amounts).map(([resource, value]) => ({ labels: { tenant, resource }, value: Number(value) }));
}
