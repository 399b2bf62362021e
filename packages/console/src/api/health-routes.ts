import { createHealth, type HealthReport } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { tenantMetrics } from '../usage/tenant-metrics.ts';
import type { RouteContext } from './console-parts.ts';
import { optionalProperties } from './schemas.ts';

export function monitoringRoutes(app: FastifyInstance, parts: RouteContext): void {
  const { watch, log } = parts;
  const health = createHealth();
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
