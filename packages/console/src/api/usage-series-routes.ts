import { entriesOf, monthOf, startOfNextMonth, type UsagePeriod, type UsageRow } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { notAllowedError, refuseUnlessTenantVisible, scopeOf } from '../access/authorization.ts';
import { visibleTenantNames } from '../access/authorization-scope.ts';
import { findServiceEntry } from '../fleet/explanation.ts';
import { readUsageSeries, type SeriesQuerystring, type SeriesSubject, seriesPlanFor } from '../usage/usage-series.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import {
  namespaceSchema,
  optionalProperties,
  responseSchemas,
  serviceSchema,
  tenantSchema,
  timeSchema,
  usageStepSchema,
} from './schemas.ts';
import { unknownServiceError } from './service-routes.ts';
import { unknownTenantError } from './tenant-routes.ts';

interface Query extends SeriesQuerystring {
  readonly tenant?: string;
  readonly namespace?: string;
  readonly name?: string;
}

export function usageSeriesRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, store, clock } = context;

  app.get<{ Querystring: Query }>(
    '/api/v1/usage/series',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Bytes, connections, requests and refusals over time, of tenants or of one Service',
        description:
          'Without `tenant`, `namespace` and `name`, returns one item per visible tenant. Minutes are kept for 2 days, hours for 60 days, days for two years.',
        querystring: optionalProperties({
          tenant: tenantSchema,
          namespace: namespaceSchema,
          name: serviceSchema,
          since: timeSchema,
          until: timeSchema,
          step: usageStepSchema,
        }),
        response: responseSchemas('`items`: what `weir usage --since -o json` prints'),
      },
    },
    async (request) => {
      const { query, caller } = request;
      const { tenant, namespace, name } = query;
      const plan = seriesPlanFor(query, clock.now());
      if ((namespace === undefined) !== (name === undefined) || (tenant !== undefined && namespace !== undefined))
        throw new ApiError('InvalidRequest', 'use "namespace" and "name" for one Service, or only "tenant"');
      if (namespace !== undefined && name !== undefined) {
        if (!(await caller.canViewNamespace(namespace)))
          throw notAllowedError(caller, `get tenantusages.weir.dev in namespace "${namespace}"`);
        const subjects = await serviceSubjects({ namespace, name }, plan.from);
        return { items: await readUsageSeries(store.usage, subjects, { plan, step: query.step }) };
      }
      const scope = await scopeOf(request, watch);
      const { table } = watch.fleet();
      if (tenant === undefined) {
        const subjects = visibleTenantNames(scope, table).map((each) => ({ tenant: each }));
        return { items: await readUsageSeries(store.usage, subjects, { plan, step: query.step }) };
      }
      refuseUnlessTenantVisible(request, watch, { scope, tenant });
      const isKnown =
        entriesOf(table, 'tenant').some((entry) => entry.name === tenant) ||
        (await store.usage.periods(tenant, 'month')).length > 0;
      if (!isKnown) throw unknownTenantError(tenant);
      return { items: await readUsageSeries(store.usage, [{ tenant }], { plan, step: query.step }) };
    },
  );

  /**
   * Returns the tenants under which a Service has usage. A Service that was deleted and created again with the same name is one Service,
   * although its uid has changed. `from` is in whole minutes since the epoch.
   */
  async function serviceSubjects(
    { namespace, name }: { readonly namespace: string; readonly name: string },
    from: number,
  ): Promise<SeriesSubject[]> {
    const entry = findServiceEntry(watch.fleet().table, namespace, name);
    const matching: Pick<UsageRow, 'tenant' | 'service'>[] = [];
    // One month at a time, so that other clients of the store need not wait for up to two years.
    for (const month of monthsBetween(from * 60_000, clock.now()))
      for (const row of await store.usage.rows(month))
        if (row.namespace === namespace && row.name === name) matching.push(row);
    if (entry !== undefined && entry.tenant !== null) matching.push({ tenant: entry.tenant, service: entry.uid });
    if (entry === undefined && matching.length === 0) throw unknownServiceError({ namespace, name });
    return [...Map.groupBy(matching, ({ tenant }) => tenant)].map(([tenant, owned]) => ({
      tenant,
      service: { namespace, name, uids: [...new Set(owned.map(({ service }) => service))] },
    }));
  }
}

/** Returns the months (UTC) from `from` to `until` (milliseconds since the epoch), ascending. */
function monthsBetween(from: number, until: number): UsagePeriod[] {
  const months = [monthOf(from)];
  for (let start = startOfNextMonth(from); start <= until; start = startOfNextMonth(start)) months.push(monthOf(start));
  return months;
}
