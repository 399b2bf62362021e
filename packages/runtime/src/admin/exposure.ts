import { isLoopback } from '../config/loopback.ts';
import type { Secret } from '../secret.ts';

export interface ExposureWarning {
  readonly message: string;
  readonly advice: string;
}

export interface AdminEndpoint {
  readonly host: string;
  readonly tls?: string | undefined;
  readonly token?: Secret | undefined;
}

/** What others on the network can read of an admin server there; undefined: nothing. */
export function exposureWarningFor({ host, tls, token }: AdminEndpoint): ExposureWarning | undefined {
  if (isLoopback(host)) return undefined;
  if (token === undefined)
    return {
      message: 'whoever reaches admin can read metrics, and the names of Services and tenants',
      advice: 'set WEIR_ADMIN_TOKEN and WEIR_ADMIN_TLS, or listen on loopback',
    };
  if (tls === undefined)
    return { message: 'the token of admin crosses the network in the clear', advice: 'set WEIR_ADMIN_TLS' };
  return undefined;
}
