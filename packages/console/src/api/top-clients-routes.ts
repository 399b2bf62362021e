import { entriesOf } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessTenantVisible, scopeOf } from '../access/authorization.ts';
import { proxiesOfTenant, readTopClients } from '../fleet/top-clients.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import { optionalProperties, requiredProperties, responseSchemas, tenantSchema } from './schemas.ts';
import { unknownTenantError } from './tenant-routes.ts';

export function topClientsRoutes(app: FastifyInstance, { watch, proxyAdmin }: RouteContext): void {
  app.get<{ Params: { tenant: string } }>(
    '/api/v1/tenants/:tenant/top-clients',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'The clients of a tenant with the most bytes and connections in the last 5 to 10 minutes',
        params: requiredProperties({ tenant: tenantSchema }),
        querystring: optionalProperties(),
        response: responseSchemas('what `weir top --clients TENANT -o json` prints'),
      },
    },
    async (request) => {
      const { tenant } = request.params;
      refuseUnlessTenantVisible(request, watch, { scope: await scopeOf(request, watch), tenant });
      const { table, heartbeats } = watch.fleet();
      if (!entriesOf(table, 'tenant').some(({ name }) => name === tenant)) throw unknownTenantError(tenant);
      const proxies = proxiesOfTenant(table, heartbeats, tenant);
      const { clients, isOff, missing } = await readTopClients(proxies, tenant, proxyAdmin);
      if (clients === undefined) throw isOff ? countingOffError() : noAnswerError(missing);
      const { since, bytes, connections } = clients;
      return { tenant, since: new Date(since).toISOString(), bytes, connections, missing };
    },
  );
}

function countingOffError(): ApiError {
  return new ApiError(
    'NoTopClients',
    'the proxies do not count clients; the operator can set the chart value proxy.topClients (WEIR_TOP_CLIENTS)',
  );
}

function noAnswerError(missing: readonly { readonly node: string; readonly problem: string }[]): ApiError {
  const [first] = missing;
  const reason = first === undefined ? 'no proxy serves the tenant' : `node ${first.node}: ${first.problem}`;
  return new ApiError('NoTopClients', `no proxy has answered (${reason})`);
}
