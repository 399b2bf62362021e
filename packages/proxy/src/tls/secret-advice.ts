import { type Matcher, type RouteKey, terminatingTlsPort } from '@weir/model/data-plane';
import type { Logger, Secret } from '@weir/runtime';

export interface MissingSecretWarningOptions {
  readonly fleetSecret: Secret | undefined;
  routes(): Matcher['routes'];
  readonly log: Pick<Logger, 'warn'>;
}

/** To be told of the routes that change: warns once when TLS is to end here, and there is no secret to open keys by. */
export function createMissingSecretWarning({
  fleetSecret,
  routes,
  log,
}: MissingSecretWarningOptions): (keys: readonly RouteKey[]) => void {
  let isSaid = fleetSecret !== undefined;
  return (keys) => {
    if (isSaid) return;
    isSaid = keys.some((key) => {
      const route = routes().get(key);
      return route !== undefined && terminatingTlsPort(route) !== undefined;
    });
    if (!isSaid) return;
    log.warn(
      { advice: 'set WEIR_FLEET_SECRET to the same as the controller has' },
      'TLS is to end here, but no private key can be opened: clients of such ports are refused',
    );
  };
}
