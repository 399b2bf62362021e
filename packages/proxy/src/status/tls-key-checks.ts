import {
  type CertificateEntry,
  type Matcher,
  type Route,
  type RouteKey,
  terminatingTlsPort,
} from '@weir/model/data-plane';
import type { Logger, Secret } from '@weir/runtime';
import type { Sealer } from '@weir/runtime/sealing';

/** Said to whoever owns the Service and to whoever runs the proxy: behind the name of the node. */
const NO_FLEET_SECRET = 'TLS cannot end here, since this proxy has no WEIR_FLEET_SECRET; ask the operator';

const DIFFERENT_FLEET_SECRET =
  'TLS cannot end here, since this proxy has another WEIR_FLEET_SECRET than the controller; ask the operator';

const NO_CERTIFICATE =
  'TLS cannot end here, since this proxy has no certificate of the Service yet; ask the operator if it lasts';

/** Why this proxy can serve nobody where TLS is to end, although the port is open: else it would be published. */
export class TlsKeyChecker {
  readonly #sealer: Sealer | undefined;
  readonly #cache = new WeakMap<CertificateEntry, { readonly fault: string | null }>();

  constructor(sealer: Sealer | undefined) {
    this.#sealer = sealer;
  }

  /** Null: none. It is asked for each route with every heartbeat. */
  problemFor(route: Route): string | null {
    if (route.settings.tls === undefined || terminatingTlsPort(route) === undefined) return null;
    const { certificate } = route;
    if (certificate === undefined) return NO_CERTIFICATE;
    const known = this.#cache.get(certificate) ?? { fault: this.#check(certificate) };
    this.#cache.set(certificate, known);
    return known.fault;
  }

  #check({ sealedKey, keyDigest }: CertificateEntry): string | null {
    if (this.#sealer === undefined) return NO_FLEET_SECRET;
    if (sealedKey === undefined) return NO_CERTIFICATE;
    return this.#sealer.open(sealedKey, keyDigest) === undefined ? DIFFERENT_FLEET_SECRET : null;
  }
}

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
