import type { FleetWatch } from '../fleet/fleet-watch.ts';
import type { Caller } from './caller.ts';
import { notAllowed } from './rules.ts';
import { namespacesOf, type Sight, seesTenantTotal } from './sight.ts';

/**
 * What the caller sees of the fleet, and of the namespaces that only the ledger still knows. `ApiError` when that is nothing: an empty
 * list would look like an empty fleet.
 */
export async function sightOf(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  others: Iterable<string> = [],
): Promise<Sight> {
  const known = new Set([...namespacesOf(watch.fleet().table), ...others]);
  const sight = await caller.sight(known);
  if (sight.kind === 'namespaces' && sight.namespaces.size === 0) throw notAllowed(caller, NOTHING);
  return sight;
}

const NOTHING = 'get tenantusages.weir.dev in any namespace that has load balancers';

/** Whether there is such a tenant is not told to those who do not see it. */
export function refuseUnlessTenantSeen(
  { caller }: { readonly caller: Caller },
  watch: FleetWatch,
  { sight, tenant }: { readonly sight: Sight; readonly tenant: string },
): void {
  if (seesTenantTotal(sight, watch.fleet().table, tenant)) return;
  throw notAllowed(caller, `get tenantusages.weir.dev in a namespace of tenant "${tenant}"`);
}
