import { proxyViewsFor, tableToJson } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { scopeOf } from '../access/authorization.ts';
import { isProblemVisible, namespacesIn } from '../access/authorization-scope.ts';
import { problemsFor } from '../fleet/problems.ts';
import type { RouteContext } from './route-context.ts';
import { optionalProperties, responseSchemas } from './schemas.ts';

export function fleetRoutes(app: FastifyInstance, { fleet: name, watch }: RouteContext): void {
  app.get(
    '/api/v1/fleet',
    {
      config: { access: 'fleet' },
      schema: {
        summary: 'The name of the fleet, its published table, and whether the store answers',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`name`, `table` (epoch, revision, id), `reachable` (the store answers), `unreadable` (number of entries that a newer version wrote)',
        ),
      },
    },
    async () => ({
      name,
      table: watch.position,
      reachable: watch.fleet().reachable,
      unreadable: watch.unreadableEntries,
    }),
  );

  app.get(
    '/api/v1/proxies',
    {
      config: { access: 'fleet' },
      schema: {
        summary: 'Proxies (one item per start of a proxy process), and nodes from which no heartbeat comes',
        querystring: optionalProperties(),
        response: responseSchemas('`items`: what `weir get proxies -o json` prints'),
      },
    },
    async () => ({ items: proxyViewsFor(watch.fleet()) }),
  );

  app.get(
    '/api/v1/problems',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Problems of objects and proxies, and how to fix them',
        querystring: optionalProperties(),
        response: responseSchemas('`items`: code, subject, severity, heals, message'),
      },
    },
    async (request) => {
      const scope = await scopeOf(request, watch);
      const problems = problemsFor(watch.fleet(), watch.views(), watch.notices);
      return { items: problems.filter((problem) => isProblemVisible(scope, problem)) };
    },
  );

  app.get(
    '/api/v1/table',
    {
      config: { access: 'fleet' },
      schema: {
        summary: 'The published routing table',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`position` and the entries by kind: nodes, tenants, services, certificates (without keys), listeners, endpoints',
        ),
      },
    },
    async () => {
      const { table } = watch.fleet();
      return { position: watch.position, ...tableToJson(table) };
    },
  );
}

/** Adds the route `/api/v1/me`, from which the page learns the rights of its user. */
export function currentUserRoute(app: FastifyInstance, { fleet, watch, authenticator }: RouteContext): void {
  app.get(
    '/api/v1/me',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'The signed-in user, and what this user may see and do',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`auth` (none, kubernetes), `user`, `fleet`, `reachable`, `namespaces` (null for all), `may` (suspend, resume)',
        ),
      },
    },
    async ({ caller }) => {
      const namespaces = watch.table === undefined ? [] : namespacesIn(watch.table);
      const [scope, suspend, resume] = await Promise.all([
        caller.scopeWithin(namespaces),
        caller.canChangeSuspensions('create'),
        caller.canChangeSuspensions('delete'),
      ]);
      return {
        auth: authenticator.kind,
        user: caller.name,
        fleet,
        reachable: watch.isReachable,
        namespaces: scope.kind === 'all' ? null : [...scope.namespaces].sort(),
        may: { suspend, resume },
      };
    },
  );
}
