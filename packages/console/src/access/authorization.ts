import assert from 'node:assert/strict';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { ApiError } from '../api/api-error.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { Authenticator } from './authenticator.ts';
import { type AuthorizationScope, isTenantVisible, namespacesIn } from './authorization-scope.ts';
import type { Caller, SuspensionVerb } from './caller.ts';
import { isCrossSite, originRefusalFor } from './request-origin.ts';

// Every route says whom it is for, or the console does not start.
export type AccessRule =
  /** Holds nothing of a fleet. */
  | 'anybody'
  /** Whoever has signed in; the route itself shows only what the caller's sight allows. */
  | 'what-one-sees'
  /** Of the namespace in the path. */
  | 'namespace'
  /** Operators: who sees every namespace. */
  | 'everything'
  /** Who may make Suspensions, or lift the one in the path. */
  | 'suspend'
  | 'resume';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent on no route: see `guardRoutes`. */
    access?: AccessRule;
  }
  interface FastifyRequest {
    caller: Caller;
  }
}

export interface RouteGuardOptions {
  readonly authenticator: Authenticator;
  /** Of the server's own address. */
  readonly scheme: 'http' | 'https';
}

/** To be called before any route is added. */
export function guardRoutes(app: FastifyInstance, { authenticator, scheme }: RouteGuardOptions): void {
  const routes: RouteOptions[] = [];
  app.decorateRequest('caller');
  app.addHook('onRoute', (route) => {
    routes.push(route);
    if (authenticator.kind === 'none' || route.config?.access === 'anybody') return;
    route.schema = { ...route.schema, security: [{ bearerAuth: [] }] };
  });
  app.addHook('onReady', async () => {
    const unruled = routes.filter((route) => route.config?.access === undefined);
    assert(unruled.length === 0, `routes without an access rule: ${unruled.map(({ url }) => url).join(', ')}`);
  });
  app.addHook('onRequest', async (request) => {
    const refusal = authenticator.kind === 'none' ? originRefusalFor(request.headers, scheme) : undefined;
    if (refusal !== undefined) throw new ApiError(refusal.code, refusal.message);
    if (ruleOf(request) === 'anybody') return;
    if (authenticator.kind !== 'none' && isCrossSite(request.headers)) throw foreignOriginError();
    request.caller = await authenticator.authenticate(request.raw);
  });
  // After validation: what is asked about is a name then.
  app.addHook('preHandler', async (request) => refuseUnlessAllowed(request, ruleOf(request)));
}

function ruleOf(request: FastifyRequest): AccessRule {
  // That there is nothing at a path is no secret: the paths are published.
  return request.is404 ? 'anybody' : (request.routeOptions.config.access ?? 'everything');
}

async function refuseUnlessAllowed({ caller, params }: FastifyRequest, rule: AccessRule): Promise<void> {
  const { namespace = '', name = '' } = (params ?? {}) as { namespace?: string; name?: string };
  switch (rule) {
    case 'anybody':
    case 'what-one-sees':
      return;
    case 'namespace':
      if (!(await caller.canViewNamespace(namespace)))
        throw notAllowedError(caller, `get tenantusages.weir.dev in namespace "${namespace}"`);
      return;
    case 'everything':
      if (!(await caller.canViewFleet())) throw notAllowedError(caller, 'get tenantusages.weir.dev in all namespaces');
      return;
    case 'suspend':
      return refuseUnlessPermitted(caller, 'create');
    case 'resume':
      return refuseUnlessPermitted(caller, 'delete', name);
  }
}

export async function refuseUnlessPermitted(caller: Caller, verb: SuspensionVerb, name?: string): Promise<void> {
  if (!(await caller.canChangeSuspensions(verb, name))) throw notAllowedError(caller, `${verb} suspensions.weir.dev`);
}

/** What right is missing, in the words of `kubectl auth can-i` and of Roles. */
export function notAllowedError(caller: Caller, right: string): ApiError {
  return new ApiError('NotAllowed', `"${caller.name ?? ''}" lacks the right to ${right}; ask the operator for it`);
}

function foreignOriginError(): ApiError {
  return new ApiError('ForeignOrigin', 'a page of another site may not use this console');
}

/**
 * What the caller sees of the fleet, and of the namespaces that only the ledger still knows. `ApiError` when that is nothing: an empty
 * list would look like an empty fleet.
 */
export async function scopeOf(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  others: Iterable<string> = [],
): Promise<AuthorizationScope> {
  const known = new Set([...namespacesIn(watch.fleet().table), ...others]);
  const sight = await caller.scopeWithin(known);
  if (sight.kind === 'namespaces' && sight.namespaces.size === 0) throw notAllowedError(caller, VIEW_ANY_NAMESPACE);
  return sight;
}

const VIEW_ANY_NAMESPACE = 'get tenantusages.weir.dev in any namespace that has load balancers';

/** Whether there is such a tenant is not told to those who do not see it. */
export function refuseUnlessTenantVisible(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  { sight, tenant }: { readonly sight: AuthorizationScope; readonly tenant: string },
): void {
  if (isTenantVisible(sight, watch.fleet().table, tenant)) return;
  throw notAllowedError(caller, `get tenantusages.weir.dev in a namespace of tenant "${tenant}"`);
}
