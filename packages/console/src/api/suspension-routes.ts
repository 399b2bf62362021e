import type { FastifyInstance } from 'fastify';
import { suspensionItemFor } from '../suspensions/suspension-item.ts';
import { ApiError } from './api-error.ts';
import type { ConsoleParts } from './console-parts.ts';
import { answer, everyOf, only, suspensionBody, suspension as suspensionName } from './schemas.ts';
import { readSuspension, refuseUnknownTarget, type SuspensionBody } from './suspension-request.ts';

export function suspensionRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { watch, store, suspensions, clock, log } = parts;

  app.get(
    '/api/v1/suspensions',
    {
      schema: {
        summary: 'Suspensions, with what they cut off and where they come from',
        querystring: only(),
        response: answer('`items`: name, target, message, until, reason, inForce, origin'),
      },
    },
    async () => {
      const { cutoffs } = await store.cutoffs.read();
      return { items: cutoffs.map((cutoff) => suspensionItemFor(cutoff, clock.now())) };
    },
  );

  app.post<{ Body: SuspensionBody }>(
    '/api/v1/suspensions',
    {
      schema: {
        summary: 'Cut off a tenant, a namespace or a Service',
        querystring: only(),
        body: suspensionBody,
        response: answer('the Suspension; the same target again replaces message and end'),
      },
    },
    async ({ body }) => {
      const request = readSuspension(body, clock.now());
      // Without a table nothing can be said about the name, and whoever must cut off must not wait for one.
      if (watch.table !== undefined) refuseUnknownTarget(request.target, watch.table);
      const cutoff = await suspensions.suspend(request);
      log.info({ suspension: cutoff.name, target: body.target }, 'suspended');
      return suspensionItemFor(cutoff, clock.now());
    },
  );

  app.delete<{ Params: { name: string } }>(
    '/api/v1/suspensions/:name',
    {
      schema: {
        summary: 'Lift a Suspension',
        params: everyOf({ name: suspensionName }),
        querystring: only(),
        response: answer('the Suspension that was lifted'),
      },
    },
    async ({ params: { name } }) => {
      const { cutoffs } = await store.cutoffs.read();
      const named = cutoffs.filter((cutoff) => cutoff.name === name);
      const cutoff = named.find(({ origin }) => origin.kind !== 'file') ?? named[0];
      if (cutoff === undefined) throw new ApiError('NotFound', `there is no Suspension "${name}"`);
      if (cutoff.origin.kind === 'file') {
        const message = `Suspension "${name}" comes from ${cutoff.origin.path}; delete it there (the file, or its document in it)`;
        throw new ApiError('OriginIsFile', message);
      }
      await suspensions.resume(cutoff);
      log.info({ suspension: name }, 'resumed');
      return suspensionItemFor(cutoff, clock.now());
    },
  );
}
