import assert from 'node:assert/strict';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { ApiError } from '../api/api-error.ts';
import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { Authenticator } from './authenticator.ts';
import { type AuthorizationScope, isTenantVisible, namespacesIn } from './authorization-scope.ts';
import type { Caller, SuspensionVerb } from './caller.ts';
import { isCrossSite, originRefusalFor } from './request-origin.ts';

/** Who may use a route. The console does not start if a route has no rule. */
export type AccessRule =
  /** Every client, also without a token. The response contains no data of a fleet. */
  | 'public'
  /** Every signed-in user. The route limits its response to the user's `AuthorizationScope`. */
  | 'scoped'
  /** Users who may view the namespace in the path. */
  | 'namespace'
  /** Operators, who are users that may view every namespace. */
  | 'fleet'
  /** Users who may create Suspensions. */
  | 'suspend'
  /** Users who may delete the Suspension in the path. */
  | 'resume';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The access rule of the route. Optional only because of fastify's types: `guardRoutes` requires a rule on every route. */
    access?: AccessRule;
  }
  interface FastifyRequest {
    caller: Caller;
  }
}

interface RouteGuardOptions {
  readonly authenticator: Authenticator;
  /** The scheme of the console's URL. */
  readonly scheme: 'http' | 'https';
}

/** Enforces the access rule of each route. Must be called before any route is added, because the hook `onRoute` sees only later routes. */
export function guardRoutes(app: FastifyInstance, { authenticator, scheme }: RouteGuardOptions): void {
  const routes: RouteOptions[] = [];
  app.decorateRequest('caller');
  app.addHook('onRoute', (route) => {
    routes.push(route);
    if (authenticator.kind === 'none' || route.config?.access === 'public') return;
    route.schema = { ...route.schema, security: [{ bearerAuth: [] }] };
  });
  app.addHook('onReady', async () => {
    const unruled = routes.filter((route) => route.config?.access === undefined);
    assert(unruled.length === 0, `routes without an access rule: ${unruled.map(({ url }) => url).join(', ')}`);
  });
  app.addHook('onRequest', async (request) => {
    const refusal = authenticator.kind === 'none' ? originRefusalFor(request.headers, scheme) : undefined;
    if (refusal !== undefined) throw new ApiError(refusal.code, refusal.message);
    if (ruleOf(request) === 'public') return;
    if (authenticator.kind !== 'none' && isCrossSite(request.headers)) throw foreignOriginError();
    request.caller = await authenticator.authenticate(request.raw);
  });
  // A preHandler runs after validation, so the names in the path are valid here.
  app.addHook('preHandler', async (request) => refuseUnlessAllowed(request, ruleOf(request)));
}

function ruleOf(request: FastifyRequest): AccessRule {
  // The 404 response for an unknown path needs no token. The response reveals nothing, because the OpenAPI document lists all paths.
  return request.is404 ? 'public' : (request.routeOptions.config.access ?? 'fleet');
}

async function refuseUnlessAllowed({ caller, params }: FastifyRequest, rule: AccessRule): Promise<void> {
  const { namespace = '', name = '' } = (params ?? {}) as { namespace?: string; name?: string };
  switch (rule) {
    case 'public':
    case 'scoped':
      return;
    case 'namespace':
      if (!(await caller.canViewNamespace(namespace)))
        throw notAllowedError(caller, `get tenantusages.weir.dev in namespace "${namespace}"`);
      return;
    case 'fleet':
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

/** Returns the error for a missing right. `right` has the words of `kubectl auth can-i`, such as `create suspensions.weir.dev`. */
export function notAllowedError(caller: Caller, right: string): ApiError {
  return new ApiError('NotAllowed', `"${caller.name ?? ''}" lacks the right to ${right}; ask the operator for it`);
}

function foreignOriginError(): ApiError {
  return new ApiError(
    'ForeignOrigin',
    'the console refuses requests from pages of other sites; open the page of the console instead',
  );
}

/**
 * Resolves with the caller's scope within the namespaces of the table and `extraNamespaces`. Throws `ApiError` NotAllowed if the caller may
 * see no namespace, because an empty list would look like an empty fleet.
 */
export async function scopeOf(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  extraNamespaces: Iterable<string> = [],
): Promise<AuthorizationScope> {
  const known = new Set([...namespacesIn(watch.fleet().table), ...extraNamespaces]);
  const scope = await caller.scopeWithin(known);
  if (scope.kind === 'namespaces' && scope.namespaces.size === 0) throw notAllowedError(caller, VIEW_ANY_NAMESPACE);
  return scope;
}

const VIEW_ANY_NAMESPACE = 'get tenantusages.weir.dev in any namespace that has load balancers';

/**
 * Throws if the caller may not see the tenant. A tenant that does not exist gets the same error, so that the error does not reveal which
 * tenants exist.
 */
export function refuseUnlessTenantVisible(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  { scope, tenant }: { readonly scope: AuthorizationScope; readonly tenant: string },
): void {
  if (isTenantVisible(scope, watch.fleet().table, tenant)) return;
  throw notAllowedError(caller, `get tenantusages.weir.dev in a namespace of tenant "${tenant}"`);
}
