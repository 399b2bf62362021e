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
      config: { access: 'everything' },
      schema: {
        summary: 'The fleet in one line: its name, the table that is published, whether the store answers',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`name`, `table` (epoch, revision, id), `reachable`, `unreadable` (entries of a newer version)',
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
      config: { access: 'everything' },
      schema: {
        summary: 'Proxies, one per life, and nodes whose proxy is silent',
        querystring: optionalProperties(),
        response: responseSchemas('`items`: what `weir get proxies -o json` prints'),
      },
    },
    async () => ({ items: proxyViewsFor(watch.fleet()) }),
  );

  app.get(
    '/api/v1/problems',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'What is wrong with objects and proxies, and what to do',
        querystring: optionalProperties(),
        response: responseSchemas('`items`: code, subject, severity, heals, message'),
      },
    },
    async (request) => {
      const sight = await scopeOf(request, watch);
      return { items: problemsFor(watch.fleet(), watch.views()).filter((problem) => isProblemVisible(sight, problem)) };
    },
  );

  app.get(
    '/api/v1/table',
    {
      config: { access: 'everything' },
      schema: {
        summary: 'The routing table as it is published',
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

/** What the page shows, and what it leaves out because the caller could not use it. */
export function currentUserRoute(app: FastifyInstance, { fleet, watch, authenticator }: RouteContext): void {
  app.get(
    '/api/v1/me',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Who asks, and what they may see and do',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`auth` (none, kubernetes), `user`, `fleet`, `reachable`, `namespaces` (null: all), `may` (suspend, resume)',
        ),
      },
    },
    async ({ caller }) => {
      const known = watch.table === undefined ? [] : namespacesIn(watch.table);
      const [sight, suspend, resume] = await Promise.all([
        caller.scopeWithin(known),
        caller.canChangeSuspensions('create'),
        caller.canChangeSuspensions('delete'),
      ]);
      return {
        auth: authenticator.kind,
        user: caller.name,
        fleet,
        reachable: watch.isReachable,
        namespaces: sight.kind === 'all' ? null : [...sight.namespaces].sort(),
        may: { suspend, resume },
      };
    },
  );
}
