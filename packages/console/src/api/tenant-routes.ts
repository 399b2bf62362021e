import { entriesOf, isInForce, monthOf, type Suspension, tenantViewsFor } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessTenantVisible, scopeOf } from '../access/authorization.ts';
import { isTenantVisible, withVisibleNamespaces } from '../access/authorization-scope.ts';
import { currentRatesFor, ratePointsFor, ZERO_RATE } from '../rates/rate-history.ts';
import { type SuspensionItem, suspensionItemFor } from '../suspensions/suspension-item.ts';
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

export function tenantRoutes(app: FastifyInstance, parts: RouteContext): void {
  const { watch, store, sampler, clock } = parts;

  app.get(
    '/api/v1/tenants',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Tenants with limits, what they have, and what they used this month',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`items`: what `weir get tenants -o json` prints; rates are of now while somebody watches',
        ),
      },
    },
    async (request) => {
      const sight = await scopeOf(request, watch);
      const fleet = watch.fleet();
      const rows = await store.usage.rows(monthOf(clock.now()));
      const rates = currentRatesFor(sampler.history);
      const seen = tenantViewsFor(fleet, rows).filter(({ name }) => isTenantVisible(sight, fleet.table, name));
      const items = seen.map((view) => ({
        ...withVisibleNamespaces(sight, view),
        rate: rates?.tenants.get(view.name) ?? ZERO_RATE,
        suspension: tenantSuspensionFor(fleet.suspensions, view.name, clock.now()),
      }));
      return { items };
    },
  );

  app.get<{ Params: { tenant: string }; Querystring: { of: SeriesStep } }>(
    '/api/v1/tenants/:tenant/series',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'What a tenant used over the last hour, two days or month',
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
      refuseUnlessTenantVisible(request, watch, { sight: await scopeOf(request, watch), tenant: name });
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
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Bytes, connections and requests of a month, by tenant and Service',
        querystring: optionalProperties({ tenant: tenantSchema, month: monthSchema }),
        response: responseSchemas('`items`: what `weir usage -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const wanted = query.month ?? monthOf(clock.now());
      const rows = await store.usage.rows(wanted);
      const others = rows.map((row) => row.namespace);
      const sight = await scopeOf(request, watch, others);
      const { table } = watch.fleet();
      const items = visibleUsage(sight, table, usageItemsFor(entriesOf(table, 'tenant'), rows, wanted));
      if (query.tenant === undefined) return { items };
      const own = items.filter((item) => item.tenant === query.tenant);
      if (own.length > 0) return { items: own };
      refuseUnlessTenantVisible(request, watch, { sight, tenant: query.tenant });
      throw unknownTenantError(query.tenant);
    },
  );
}

function tenantSuspensionFor(cutoffs: readonly Suspension[], tenant: string, now: number): SuspensionItem | null {
  const found = cutoffs.find(
    (cutoff) => isInForce(cutoff, now) && cutoff.target.kind === 'tenant' && cutoff.target.tenant === tenant,
  );
  return found === undefined ? null : suspensionItemFor(found, now);
}

function unknownTenantError(name: string): ApiError {
  return new ApiError('NotFound', `tenant "${name}" is not known here; \`weir get tenants\` lists those that are`);
}
