import { type Cutoff, entriesOf, isInForce, monthOf, tenantViewsFor } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessTenantSeen, sightOf } from '../access/seen.ts';
import { seesTenantTotal, tenantSeen } from '../access/sight.ts';
import { NO_RATE, pointsFor, ratesFor } from '../rates/rates.ts';
import { type SuspensionItem, suspensionItemFor } from '../suspensions/suspension-item.ts';
import type { SeriesStep } from '../usage/series.ts';
import { tenantSeries } from '../usage/tenant-series.ts';
import { usageItemsFor } from '../usage/usage-items.ts';
import { usageSeen } from '../usage/usage-seen.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { answer, everyOf, month, only, seriesStep, tenant } from './schemas.ts';

export function tenantRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { watch, store, sampler, clock } = parts;

  app.get(
    '/api/v1/tenants',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Tenants with limits, what they have, and what they used this month',
        querystring: only(),
        response: answer('`items`: what `weir get tenants -o json` prints; rates are of now while somebody watches'),
      },
    },
    async (request) => {
      const sight = await sightOf(request, watch);
      const fleet = watch.fleet();
      const rows = await store.usage.rows(monthOf(clock.now()));
      const rates = ratesFor(sampler.history);
      const seen = tenantViewsFor(fleet, rows).filter(({ name }) => seesTenantTotal(sight, fleet.table, name));
      const items = seen.map((view) => ({
        ...tenantSeen(sight, view),
        rate: rates?.tenants.get(view.name) ?? NO_RATE,
        suspension: suspensionOfTenant(fleet.cutoffs, view.name, clock.now()),
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
        params: everyOf({ tenant }),
        querystring: only({ of: seriesStep }),
        response: answer('`items`: bytes, connections and requests by period, ascending; `points`: rates by second'),
      },
    },
    async (request) => {
      const { query } = request;
      const { tenant: name } = request.params;
      refuseUnlessTenantSeen(request, watch, { sight: await sightOf(request, watch), tenant: name });
      const items = await tenantSeries(store.usage, name, { step: query.of, now: clock.now() });
      const isKnown = entriesOf(watch.fleet().table, 'tenant').some((entry) => entry.name === name);
      if (!isKnown && items.every((item) => item.connections === 0)) throw unknownTenant(name);
      const points = pointsFor(sampler.history, { kind: 'tenant', id: name });
      return { tenant: name, of: query.of, items, points };
    },
  );

  app.get<{ Querystring: { tenant?: string; month?: string } }>(
    '/api/v1/usage',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Bytes, connections and requests of a month, by tenant and Service',
        querystring: only({ tenant, month }),
        response: answer('`items`: what `weir usage -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const wanted = query.month ?? monthOf(clock.now());
      const rows = await store.usage.rows(wanted);
      const others = rows.map((row) => row.namespace);
      const sight = await sightOf(request, watch, others);
      const { table } = watch.fleet();
      const items = usageSeen(sight, table, usageItemsFor(entriesOf(table, 'tenant'), rows, wanted));
      if (query.tenant === undefined) return { items };
      const own = items.filter((item) => item.tenant === query.tenant);
      if (own.length > 0) return { items: own };
      refuseUnlessTenantSeen(request, watch, { sight, tenant: query.tenant });
      throw unknownTenant(query.tenant);
    },
  );
}

function suspensionOfTenant(cutoffs: readonly Cutoff[], tenant: string, now: number): SuspensionItem | null {
  const found = cutoffs.find(
    (cutoff) => isInForce(cutoff, now) && cutoff.target.kind === 'tenant' && cutoff.target.tenant === tenant,
  );
  return found === undefined ? null : suspensionItemFor(found, now);
}

function unknownTenant(name: string): ApiError {
  return new ApiError('NotFound', `tenant "${name}" is not known here; \`weir get tenants\` lists those that are`);
}
