import type { FastifyInstance } from 'fastify';
import { namespacesIn } from '../access/sight.ts';
import type { RouteContext } from './console-parts.ts';
import { optionalProperties, responseSchemas } from './schemas.ts';

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
