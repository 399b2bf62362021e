import type { ServiceView } from '@weir/model';
import { type CurrentRates, type Rate, ZERO_RATE } from './rates.ts';

/** One event of `/api/v1/live`. */
export interface LiveFrame {
  /** RFC 3339. */
  readonly at: string;
  readonly tenants: readonly TenantRate[];
  readonly services: readonly ServiceRate[];
}

export interface TenantRate extends Rate {
  readonly name: string;
}

export interface ServiceRate extends Rate {
  readonly namespace: string;
  readonly name: string;
  readonly tenant: string | null;
}

/** Every tenant and Service that there is, also those at rest, sorted by name. */
export function liveFrameFor(
  rates: CurrentRates,
  tenants: readonly string[],
  services: readonly ServiceView[],
): LiveFrame {
  return {
    at: new Date(rates.at).toISOString(),
    tenants: tenants.map((name) => ({ name, ...(rates.tenants.get(name) ?? ZERO_RATE) })),
    services: services.map(({ uid, namespace, name, tenant }) => ({
      namespace,
      name,
      tenant,
      ...(rates.services.get(uid) ?? ZERO_RATE),
    })),
  };
}
