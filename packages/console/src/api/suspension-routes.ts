import { entriesOf, type Suspension } from '@weir/model';
import { AUDIT_PAGE_SIZE } from '@weir/store';
import type { FastifyInstance } from 'fastify';
import { refuseUnlessPermitted, scopeOf } from '../access/authorization.ts';
import { isSuspensionVisible, isTargetVisible, namespacesIn } from '../access/authorization-scope.ts';
import type { Caller } from '../access/caller.ts';
import { suspensionAuditItemFor, suspensionItemFor, withoutDoubleReleases } from '../suspensions/suspension-item.ts';
import { suspensionNameFor } from '../suspensions/suspension-object.ts';
import type { SuspensionRequest } from '../suspensions/suspension-writer.ts';
import { alreadySuspendedError } from '../suspensions/suspension-writer.ts';
import { ApiError } from './api-error.ts';
import type { RouteContext } from './route-context.ts';
import {
  auditIdSchema,
  optionalProperties,
  replaceSchema,
  requiredProperties,
  responseSchemas,
  suspensionBodySchema,
  suspensionNameSchema as suspensionName,
  tenantSchema,
} from './schemas.ts';
import {
  parseSuspensionBody,
  refuseUnknownTarget,
  type SuspensionBody,
  wouldShortenSuspension,
} from './suspension-request.ts';

export function suspensionRoutes(app: FastifyInstance, context: RouteContext): void {
  const { watch, store, suspensionWriter, clock, log } = context;

  app.get(
    '/api/v1/suspensions',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Suspensions with target, end, origin and author',
        querystring: optionalProperties(),
        response: responseSchemas(
          '`items`: name, target, message, until, reason, inForce, origin, createdAt, madeBy, rule',
        ),
      },
    },
    async (request) => {
      const suspensions = [...(await store.suspensions.read()).suspensions, ...watch.localSuspensions];
      // Without a table only users who may view the whole fleet see Suspensions, because the scope of other users depends on the table.
      const isVisible = (await request.caller.canViewFleet()) ? () => true : await visibilityFor(request);
      return { items: suspensions.filter(isVisible).map((suspension) => suspensionItemFor(suspension, clock.now())) };
    },
  );

  app.get<{ Querystring: { before?: string; tenant?: string } }>(
    '/api/v1/suspensions/audit',
    {
      config: { access: 'scoped' },
      schema: {
        summary: 'Suspensions and releases of the last two years, newest first',
        querystring: optionalProperties({ before: auditIdSchema, tenant: tenantSchema }),
        response: responseSchemas(
          '`items`: id, at, action (Suspended or Released), why, releasedBy, suspension; with `tenant` only those of the tenant, its namespaces and its Services, so possibly none. `next`: the value of `before` for older items, or null',
        ),
      },
    },
    async (request) => {
      const { before, tenant } = request.query;
      const records = await store.suspensions.audit(before);
      const isVisible = (await request.caller.canViewFleet()) ? () => true : await visibilityFor(request);
      const namespaces = tenant === undefined ? undefined : namespacesOf(tenant);
      const shown = withoutDoubleReleases(records).filter(
        ({ suspension }) =>
          isVisible(suspension) && (namespaces === undefined || concernsTenant(suspension, tenant, namespaces)),
      );
      const next = records.length < AUDIT_PAGE_SIZE ? null : (records.at(-1)?.id ?? null);
      return { items: shown.map(suspensionAuditItemFor), next };
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
          'the Suspension. A repeated request of the same user replaces message and end. A Suspension that another user made, or that ends later than the request, is replaced only with `replace=true`',
        ),
      },
    },
    async ({ body, caller, query }) => {
      const requested = parseSuspensionBody(body, clock.now());
      const request = { ...requested, requestedBy: caller.name, replace: query.replace === 'true' };
      await refuseInvalidRequest(request, caller);
      const suspension = await suspensionWriter.suspend(request);
      log.info({ suspension: suspension.name, target: body.target, by: caller.name }, 'suspended');
      return suspensionItemFor(suspension, clock.now());
    },
  );

  app.delete<{ Params: { name: string } }>(
    '/api/v1/suspensions/:name',
    {
      config: { access: 'resume' },
      schema: {
        summary: 'Delete a Suspension (resume)',
        params: requiredProperties({ name: suspensionName }),
        querystring: optionalProperties(),
        response: responseSchemas('the deleted Suspension'),
      },
    },
    async ({ params: { name }, caller }) => {
      const { suspensions } = await store.suspensions.read();
      const named = suspensions.filter((suspension) => suspension.name === name);
      const suspension = named.find(({ origin }) => origin.kind !== 'file') ?? named[0];
      const local = watch.localSuspensions.find((each) => each.name === name);
      if (suspension === undefined && local?.origin.kind === 'local') {
        const message = `Suspension "${name}" was made on node ${local.origin.node} and holds only there; run \`weir resume ${resumeArguments(local)} --local\` on this node`;
        throw new ApiError('OriginIsLocal', message);
      }
      if (suspension === undefined)
        throw new ApiError('NotFound', `there is no Suspension "${name}"; GET /api/v1/suspensions lists them`);
      if (suspension.origin.kind === 'file') {
        const message = `Suspension "${name}" comes from ${suspension.origin.path}; delete it in that file`;
        throw new ApiError('OriginIsFile', message);
      }
      await suspensionWriter.resume(suspension, caller.name);
      log.info({ suspension: name, by: caller.name }, 'resumed');
      return suspensionItemFor(suspension, clock.now());
    },
  );

  /** Returns the namespaces of a tenant; none if the tenant is not in the table, because the audit trail also has tenants of the past. */
  function namespacesOf(tenant: string): ReadonlySet<string> {
    const tenants = watch.table === undefined ? [] : entriesOf(watch.table, 'tenant');
    return new Set(tenants.find(({ name }) => name === tenant)?.namespaces);
  }

  async function visibilityFor(request: { readonly caller: Caller }): Promise<(suspension: Suspension) => boolean> {
    const scope = await scopeOf(request, watch);
    const tableAndServices = { table: watch.fleet().table, services: watch.views() };
    return (suspension) => isSuspensionVisible(scope, suspension, tableAndServices);
  }

  async function refuseInvalidRequest(request: SuspensionRequest, caller: Caller): Promise<void> {
    const name = suspensionNameFor(request.target);
    // Replacing a Suspension needs the right to delete it.
    if (request.replace) await refuseUnlessPermitted(caller, 'delete', name);
    else if (wouldShortenSuspension(request, watch.suspensions))
      throw alreadySuspendedError(name, 'and ends later than the request');
    // Without a table the target cannot be checked. The Suspension is accepted, because it may be urgent.
    if (watch.table === undefined) return;
    // A user who may not see the target must not learn from the response whether the target exists.
    const scope = await caller.scopeWithin(namespacesIn(watch.table));
    if (isTargetVisible(scope, request.target, watch.table)) refuseUnknownTarget(request.target, watch.table);
  }
}

function concernsTenant({ target }: Suspension, tenant: string | undefined, namespaces: ReadonlySet<string>): boolean {
  return target.kind === 'tenant' ? target.tenant === tenant : namespaces.has(target.namespace);
}

/** Returns the target as `weir resume` takes it. */
function resumeArguments({ target }: Suspension): string {
  switch (target.kind) {
    case 'tenant':
      return target.tenant;
    case 'namespace':
      return `--namespace ${target.namespace}`;
    case 'service':
      return `${target.namespace}/${target.service}`;
  }
}
