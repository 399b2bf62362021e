import { entriesOf, isInForce, monthOf, type Suspension, tenantViewsFor } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessTenantVisible, scopeOf } from '../access/authorization.ts';
import { isTenantVisible, withVisibleNamespaces } from '../access/authorization-scope.ts';
import { currentRatesFor, ratePointsFor, ZERO_RATE } from '../rates/rate-history.ts';
import { type SuspensionItem, suspensionItemFor } from '../suspensions/suspension-item.ts';
import { forecastsFor, readForecastDays } from '../usage/forecast.ts';
import type { SeriesStep } from '../usage/tenant-series.ts';
import { readTenantSeries } from '../usage/tenant-series.ts';
import { usageItemsFor, visibleUsage } from '../usage/usage-items.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import {
  monthSchema,
  optionalProperties,
  requiredProperties,
  responseSchemas,
  seriesStepSchema,
  tenantSchema,
} from './schemas.ts';

export function tenantRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, store, sampler, clock } = context;

  app.get(
    '/api/v1/tenants',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Tenants with limits, current use, and traffic of this month',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`items`: what `weir get tenants -o json` prints; the rates are zero unless a live stream is open',
        ),
      },
    },
    async (request) => {
      const scope = await scopeOf(request, watch);
      const fleet = watch.fleet();
      const rows = await store.usage.rows(monthOf(clock.now()));
      const rates = currentRatesFor(sampler.history);
      const visible = tenantViewsFor(fleet, rows).filter(({ name }) => isTenantVisible(scope, fleet.table, name));
      const items = visible.map((view) => ({
        ...withVisibleNamespaces(scope, view),
        rate: rates?.tenants.get(view.name) ?? ZERO_RATE,
        suspension: tenantSuspensionFor(fleet.suspensions, view.name, clock.now()),
      }));
      return { items };
    },
  );

  app.get<{ Params: { tenant: string }; Querystring: { of: SeriesStep } }>(
    '/api/v1/tenants/:tenant/series',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Usage of a tenant in the last hour, the last two days or the last 31 days',
        params: requiredProperties({ tenant: tenantSchema }),
        querystring: optionalProperties({ of: seriesStepSchema }),
        response: responseSchemas(
          '`items`: bytes, connections and requests by period, ascending; `points`: rates by second',
        ),
      },
    },
    async (request) => {
      const { query } = request;
      const { tenant: name } = request.params;
      refuseUnlessTenantVisible(request, watch, { scope: await scopeOf(request, watch), tenant: name });
      const items = await readTenantSeries(store.usage, name, { step: query.of, now: clock.now() });
      const isKnown = entriesOf(watch.fleet().table, 'tenant').some((entry) => entry.name === name);
      if (!isKnown && items.every((item) => item.connections === 0)) throw unknownTenantError(name);
      const points = ratePointsFor(sampler.history, { kind: 'tenant', id: name });
      return { tenant: name, of: query.of, items, points };
    },
  );

  app.get<{ Querystring: { tenant?: string; month?: string } }>(
    '/api/v1/usage',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Bytes, connections and requests of a month, by tenant and Service',
        querystring: optionalProperties({ tenant: tenantSchema, month: monthSchema }),
        response: responseSchemas('`items`: what `weir usage -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const now = clock.now();
      const month = query.month ?? monthOf(now);
      const isCurrent = month === monthOf(now);
      const [rows, days] = await Promise.all([
        store.usage.rows(month),
        isCurrent ? readForecastDays(store.usage, now) : [],
      ]);
      const forecasts = isCurrent ? forecastsFor(rows, days, now) : undefined;
      // The ledger also contains the usage of namespaces that are no longer in the table.
      const ledgerNamespaces = rows.map((row) => row.namespace);
      const scope = await scopeOf(request, watch, ledgerNamespaces);
      const { table } = watch.fleet();
      const all = usageItemsFor(entriesOf(table, 'tenant'), rows, { month, ...(forecasts && { forecasts }) });
      const items = visibleUsage(scope, table, all);
      if (query.tenant === undefined) return { items };
      const matching = items.filter((item) => item.tenant === query.tenant);
      if (matching.length > 0) return { items: matching };
      refuseUnlessTenantVisible(request, watch, { scope, tenant: query.tenant });
      throw unknownTenantError(query.tenant);
    },
  );
}

function tenantSuspensionFor(suspensions: readonly Suspension[], tenant: string, now: number): SuspensionItem | null {
  const found = suspensions.find(
    (suspension) =>
      isInForce(suspension, now) && suspension.target.kind === 'tenant' && suspension.target.tenant === tenant,
  );
  return found === undefined ? null : suspensionItemFor(found, now);
}

export function unknownTenantError(name: string): ApiError {
  return new ApiError('NotFound', `no tenant "${name}" in this fleet; \`weir get tenants\` lists the tenants`);
}
