import type { Suspension } from '@weir/model';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessPermitted, scopeOf } from '../access/authorization.ts';
import { isCutoffVisible, isTargetVisible, namespacesIn } from '../access/authorization-scope.ts';
import type { Caller } from '../access/caller.ts';
import { suspensionItemFor } from '../suspensions/suspension-item.ts';
import { suspensionNameFor } from '../suspensions/suspension-object.ts';
import type { SuspensionRequest } from '../suspensions/suspension-writer.ts';
import { alreadySuspendedError } from '../suspensions/suspension-writer.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import {
  optionalProperties,
  replaceSchema,
  requiredProperties,
  responseSchemas,
  suspensionBodySchema,
  suspensionNameSchema as suspensionName,
} from './schemas.ts';
import {
  parseSuspensionBody,
  refuseUnknownTarget,
  type SuspensionBody,
  wouldShortenSuspension,
} from './suspension-request.ts';

export function suspensionRoutes(app: FastifyInstance, parts: RouteContext): void {
  const { watch, store, suspensions, clock, log } = parts;

  app.get(
    '/api/v1/suspensions',
    {
      config: { access: 'what-one-sees' },
      schema: {
        summary: 'Suspensions, with what they cut off and where they come from',
        querystring: optionalProperties(),
        response: responseSchemas('`items`: name, target, message, until, reason, inForce, origin'),
      },
    },
    async (request) => {
      const { suspensions } = await store.suspensions.read();
      // Of what a table names nothing can be told without one; operators see all the same what is cut off.
      const isSeen = (await request.caller.canViewFleet()) ? () => true : await seenBy(request);
      return { items: suspensions.filter(isSeen).map((cutoff) => suspensionItemFor(cutoff, clock.now())) };
    },
  );

  app.post<{ Body: SuspensionBody; Querystring: { replace?: 'true' } }>(
    '/api/v1/suspensions',
    {
      config: { access: 'suspend' },
      schema: {
        summary: 'Cut off a tenant, a namespace or a Service',
        querystring: optionalProperties({ replace: replaceSchema }),
        body: suspensionBodySchema,
        response: responseSchemas(
          'the Suspension; whoever made it changes message and end by asking again. One of somebody else, or one that lasts longer, is replaced only with `replace=true`',
        ),
      },
    },
    async ({ body, caller, query }) => {
      const wanted = parseSuspensionBody(body, clock.now());
      const request = { ...wanted, requestedBy: caller.name, replace: query.replace === 'true' };
      await refuseUnlessSensible(request, caller);
      const cutoff = await suspensions.suspend(request);
      log.info({ suspension: cutoff.name, target: body.target, by: caller.name }, 'suspended');
      return suspensionItemFor(cutoff, clock.now());
    },
  );

  app.delete<{ Params: { name: string } }>(
    '/api/v1/suspensions/:name',
    {
      config: { access: 'resume' },
      schema: {
        summary: 'Lift a Suspension',
        params: requiredProperties({ name: suspensionName }),
        querystring: optionalProperties(),
        response: responseSchemas('the Suspension that was lifted'),
      },
    },
    async ({ params: { name }, caller }) => {
      const { suspensions: cutoffs } = await store.suspensions.read();
      const named = cutoffs.filter((cutoff) => cutoff.name === name);
      const cutoff = named.find(({ origin }) => origin.kind !== 'file') ?? named[0];
      if (cutoff === undefined) throw new ApiError('NotFound', `there is no Suspension "${name}"`);
      if (cutoff.origin.kind === 'file') {
        const message = `Suspension "${name}" comes from ${cutoff.origin.path}; delete it there (the file, or its document in it)`;
        throw new ApiError('OriginIsFile', message);
      }
      await suspensions.resume(cutoff);
      log.info({ suspension: name, by: caller.name }, 'resumed');
      return suspensionItemFor(cutoff, clock.now());
    },
  );

  async function seenBy(request: { readonly caller: Caller }): Promise<(cutoff: Suspension) => boolean> {
    const sight = await scopeOf(request, watch);
    const things = { table: watch.fleet().table, services: watch.views() };
    return (cutoff) => isCutoffVisible(sight, cutoff, things);
  }

  async function refuseUnlessSensible(request: SuspensionRequest, caller: Caller): Promise<void> {
    const name = suspensionNameFor(request.target);
    // It lifts what it replaces.
    if (request.replace) await refuseUnlessPermitted(caller, 'delete', name);
    else if (wouldShortenSuspension(request, watch.cutoffs)) throw alreadySuspendedError(name, 'and lasts longer');
    // Without a table nothing can be said about the name, and whoever must cut off must not wait for one.
    if (watch.table === undefined) return;
    // Nor is it to those who do not see the target: whether it is there is not theirs to know.
    const sight = await caller.scopeWithin(namespacesIn(watch.table));
    if (isTargetVisible(sight, request.target, watch.table)) refuseUnknownTarget(request.target, watch.table);
  }
}
