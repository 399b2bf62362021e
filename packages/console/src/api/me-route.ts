import type { FastifyInstance } from 'fastify';
import { namespacesOf } from '../access/sight.ts';
import type { ConsoleParts } from './console-parts.ts';
import { answer, only } from './schemas.ts';

/** What the page shows, and what it leaves out because the caller could not use it. */
export function meRoute(app: FastifyInstance, { fleet, watch, signIn }: ConsoleParts): void {
  app.get(
    '/api/v1/me',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Who asks, and what they may see and do',
        querystring: only(),
        response: answer(
          '`auth` (none, kubernetes), `user`, `fleet`, `reachable`, `namespaces` (null: all), `may` (suspend, resume)',
        ),
      },
    },
    async ({ caller }) => {
      const known = watch.table === undefined ? [] : namespacesOf(watch.table);
      const [sight, suspend, resume] = await Promise.all([
        caller.sight(known),
        caller.may('create'),
        caller.may('delete'),
      ]);
      return {
        auth: signIn.kind,
        user: caller.name,
        fleet,
        reachable: watch.isReachable,
        namespaces: sight.kind === 'all' ? null : [...sight.namespaces].sort(),
        may: { suspend, resume },
      };
    },
  );
}
