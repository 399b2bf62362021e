import { addCounters, monthOf, tenantViewsFor, ZERO_COUNTERS } from '@weir/model';
import { StoreError } from '@weir/store';
import type { FastifyInstance } from 'fastify';
import { scopeOf } from '../access/authorization.ts';
import { isNamespaceVisible } from '../access/authorization-scope.ts';
import { explanationFor, findServiceEntry } from '../fleet/explanation.ts';
import { currentRatesFor, ratePointsFor, ZERO_RATE } from '../rates/rate-history.ts';
import { suspensionsFor } from '../suspensions/suspension-item.ts';
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

export function serviceRoutes(app: FastifyInstance, parts: RouteContext): void {
  const { watch, store, sampler, clock } = parts;

  app.get<{ Querystring: ServiceFilter }>(
    '/api/v1/services',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Services that Weir takes, with state and reason',
        querystring: optionalProperties({ namespace: namespaceSchema, tenant: tenantSchema }),
        response: responseSchemas('`items`: what `weir get services -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const sight = await scopeOf(request, watch);
      const items = watch
        .views()
        .filter(
          (view) =>
            isNamespaceVisible(sight, view.namespace) &&
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
        summary: 'Why one Service is as it is',
        params: requiredProperties({ namespace: namespaceSchema, name: serviceSchema }),
        querystring: optionalProperties(),
        response: responseSchemas('what `weir explain -o json` prints'),
      },
    },
    async ({ params, caller }) => {
      const fleet = watch.fleet();
      const entry = findServiceEntry(fleet.table, params.namespace, params.name);
      if (entry === undefined) throw unknownServiceError(params);
      // Whoever asks why while the store is away is told what is known without it.
      const rows = await store.usage.rows(monthOf(clock.now())).catch(fallbackIfStoreAway(undefined));
      const own = rows?.filter((row) => row.service === entry.uid);
      const history = sampler.history;
      // A Service that only holds on to its tenant's name in a dispute is told nothing of whoever has the name.
      const seesAll = await caller.canViewFleet();
      return {
        ...explanationFor(entry, {
          fleet,
          tenant: tenantViewsFor(fleet, rows ?? []).find(
            (view) => view.name === entry.tenant && (seesAll || view.namespaces.includes(entry.namespace)),
          ),
          month: own?.reduce((total, row) => addCounters(total, row.counters), ZERO_COUNTERS) ?? null,
        }),
        suspensions: suspensionsFor(fleet.suspensions, entry, clock.now()),
        rate: currentRatesFor(history)?.services.get(entry.uid) ?? ZERO_RATE,
        points: ratePointsFor(history, { kind: 'service', id: entry.uid }),
      };
    },
  );
}

function fallbackIfStoreAway<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof StoreError && error.code === 'AWAY') return instead;
    throw error;
  };
}

function unknownServiceError({ namespace, name }: ServicePath): ApiError {
  return new ApiError(
    'NotFound',
    `Weir has no Service "${namespace}/${name}"; it takes those of type LoadBalancer whose loadBalancerClass is its own (\`weir get services\` lists them)`,
  );
}
