import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { Caller } from './caller.ts';
import { notAllowedError } from './rules.ts';
import { type AuthorizationScope, isTenantVisible, namespacesIn } from './sight.ts';

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
