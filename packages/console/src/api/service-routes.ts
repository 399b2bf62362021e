import { add, monthOf, tenantViewsFor, ZERO } from '@weir/model';
import { StoreError } from '@weir/store';
import type { FastifyInstance } from 'fastify';
import { sightOf } from '../access/seen.ts';
import { seesNamespace } from '../access/sight.ts';
import { explanationFor, serviceEntryFor } from '../fleet/explanation.ts';
import { NO_RATE, pointsFor, ratesFor } from '../rates/rates.ts';
import { suspensionsOf } from '../suspensions/suspension-item.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { answer, everyOf, namespace, only, service, tenant } from './schemas.ts';

interface ServiceFilter {
  readonly namespace?: string;
  readonly tenant?: string;
}

interface ServicePath {
  readonly namespace: string;
  readonly name: string;
}

export function serviceRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { watch, store, sampler, clock } = parts;

  app.get<{ Querystring: ServiceFilter }>(
    '/api/v1/services',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Services that Weir takes, with state and reason',
        querystring: only({ namespace, tenant }),
        response: answer('`items`: what `weir get services -o json` prints'),
      },
    },
    async (request) => {
      const { query } = request;
      const sight = await sightOf(request, watch);
      const items = watch
        .views()
        .filter(
          (view) =>
            seesNamespace(sight, view.namespace) &&
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
        params: everyOf({ namespace, name: service }),
        querystring: only(),
        response: answer('what `weir explain -o json` prints'),
      },
    },
    async ({ params, caller }) => {
      const fleet = watch.fleet();
      const entry = serviceEntryFor(fleet.table, params.namespace, params.name);
      if (entry === undefined) throw unknownService(params);
      // Whoever asks why while the store is away is told what is known without it.
      const rows = await store.usage.rows(monthOf(clock.now())).catch(ifAway(undefined));
      const own = rows?.filter((row) => row.service === entry.uid);
      const history = sampler.history;
      // A Service that only holds on to its tenant's name in a dispute is told nothing of whoever has the name.
      const seesAll = await caller.seesAll();
      return {
        ...explanationFor(entry, {
          fleet,
          tenant: tenantViewsFor(fleet, rows ?? []).find(
            (view) => view.name === entry.tenant && (seesAll || view.namespaces.includes(entry.namespace)),
          ),
          month: own?.reduce((total, row) => add(total, row.counters), ZERO) ?? null,
        }),
        suspensions: suspensionsOf(fleet.cutoffs, entry, clock.now()),
        rate: ratesFor(history)?.services.get(entry.uid) ?? NO_RATE,
        points: pointsFor(history, { kind: 'service', id: entry.uid }),
      };
    },
  );
}

function ifAway<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof StoreError && error.code === 'AWAY') return instead;
    throw error;
  };
}

function unknownService({ namespace, name }: ServicePath): ApiError {
  return new ApiError(
    'NotFound',
    `Weir has no Service "${namespace}/${name}"; it takes those of type LoadBalancer whose loadBalancerClass is its own (\`weir get services\` lists them)`,
  );
}
