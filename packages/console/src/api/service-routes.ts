import { addCounters, type Counters, dayOf, monthOf, tenantViewsFor, type UsageRow, ZERO_COUNTERS } from '@weir/model';
import { StoreError } from '@weir/store';
import type { FastifyInstance } from 'fastify';
import { scopeOf } from '../access/authorization.ts';
import { isNamespaceVisible } from '../access/authorization-scope.ts';
import { explanationFor, findServiceEntry } from '../fleet/explanation.ts';
import { currentRatesFor, ratePointsFor, ZERO_RATE } from '../rates/rate-history.ts';
import { suspensionItemsFor } from '../suspensions/suspension-item.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import {
  namespaceSchema,
  optionalProperties,
  requiredProperties,
  responseSchemas,
  serviceSchema,
  tenantSchema,
} from './schemas.ts';

interface ServiceFilter {
  readonly namespace?: string;
  readonly tenant?: string;
}

interface ServicePath {
  readonly namespace: string;
  readonly name: string;
}

export function serviceRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, store, sampler, clock } = context;

  app.get<{ Querystring: ServiceFilter }>(
    '/api/v1/services',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Services of this fleet, with state and reason',
        querystring: optionalProperties({ namespace: namespaceSchema, tenant: tenantSchema }),
        response: responseSchemas('`items`: what `weir get services -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const scope = await scopeOf(request, watch);
      const items = watch
        .views()
        .filter(
          (view) =>
            isNamespaceVisible(scope, view.namespace) &&
            (query.namespace === undefined || view.namespace === query.namespace) &&
            (query.tenant === undefined || view.tenant === query.tenant),
        );
      return { items };
    },
  );

  app.get<{ Params: ServicePath }>(
    '/api/v1/services/:namespace/:name',
    {
      config: { access: 'namespace' },
      schema: {
        summary: 'One Service with settings, endpoints, limits and problems',
        params: requiredProperties({ namespace: namespaceSchema, name: serviceSchema }),
        querystring: optionalProperties(),
        response: responseSchemas('what `weir explain -o json` prints'),
      },
    },
    async ({ params, caller }) => {
      const fleet = watch.fleet();
      const entry = findServiceEntry(fleet.table, params.namespace, params.name);
      if (entry === undefined) throw unknownServiceError(params);
      // The usage in the response is null if the store is unreachable.
      const now = clock.now();
      const [rows, todaysRows] = await Promise.all(
        [store.usage.rows(monthOf(now)), store.usage.rows(dayOf(now), entry.tenant ?? undefined)].map((reading) =>
          reading.catch(undefinedIfStoreUnreachable),
        ),
      );
      const usageIn = (rowsOfPeriod: readonly UsageRow[] | undefined): Counters | null =>
        rowsOfPeriod
          ?.filter((row) => row.service === entry.uid)
          .reduce((total, row) => addCounters(total, row.counters), ZERO_COUNTERS) ?? null;
      const history = sampler.history;
      // While two policies claim a tenant name, a Service keeps its tenant name, although that name may have a new owner. The user must not
      // see the new owner's data.
      const isOperator = await caller.canViewFleet();
      return {
        ...explanationFor(entry, {
          fleet,
          notices: watch.notices,
          tenant: tenantViewsFor(fleet, rows ?? []).find(
            (view) => view.name === entry.tenant && (isOperator || view.namespaces.includes(entry.namespace)),
          ),
          month: usageIn(rows),
          today: usageIn(todaysRows),
        }),
        suspensions: suspensionItemsFor([...fleet.suspensions, ...watch.localSuspensions], entry, now),
        rate: currentRatesFor(history)?.services.get(entry.uid) ?? ZERO_RATE,
        points: ratePointsFor(history, { kind: 'service', id: entry.uid }),
      };
    },
  );
}

function undefinedIfStoreUnreachable(error: unknown): undefined {
  if (error instanceof StoreError && error.code === 'AWAY') return undefined;
  throw error;
}

export function unknownServiceError({ namespace, name }: ServicePath): ApiError {
  return new ApiError(
    'NotFound',
    `no Service "${namespace}/${name}"; Weir serves Services of type LoadBalancer with its loadBalancerClass (\`weir get services\` lists them)`,
  );
}
