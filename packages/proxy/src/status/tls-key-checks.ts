import {
  type CertificateEntry,
  type Matcher,
  type Route,
  type RouteKey,
  terminatingTlsPort,
} from '@weir/model/data-plane';
import type { Logger, Secret } from '@weir/runtime';
import type { Sealer } from '@weir/runtime/sealing';

// The messages are shown to the Service's owner and the operator, after the name of the node.
const NO_FLEET_SECRET = 'TLS cannot be terminated: this proxy has no WEIR_FLEET_SECRET; ask the operator';

const DIFFERENT_FLEET_SECRET =
  'TLS cannot be terminated: this proxy and the controller have different values of WEIR_FLEET_SECRET; ask the operator';

const NO_CERTIFICATE =
  'TLS cannot be terminated: this proxy has no certificate of the Service yet; ask the operator if this lasts';

/**
 * Finds routes whose TLS this proxy cannot terminate. The addresses of this proxy's node must not be published for
 * these routes.
 */
export class TlsKeyChecker {
  readonly #sealer: Sealer | undefined;
  readonly #cache = new WeakMap<CertificateEntry, { readonly fault: string | null }>();

  constructor(sealer: Sealer | undefined) {
    this.#sealer = sealer;
  }

  /**
   * Returns why this proxy cannot terminate TLS for the route, or null if it can. The result is cached, because every
   * heartbeat calls this method for each route.
   */
  problemFor(route: Route): string | null {
    if (route.settings.tls === undefined || terminatingTlsPort(route) === undefined) return null;
    const { certificates, endpointCertificate } = route;
    if (certificates.length === 0) return NO_CERTIFICATE;
    for (const certificate of endpointCertificate === undefined
      ? certificates
      : [...certificates, endpointCertificate]) {
      const fault = this.#faultOf(certificate);
      if (fault !== null) return fault;
    }
    return null;
  }

  #faultOf(certificate: CertificateEntry): string | null {
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

/**
 * Returns a function that takes the keys of changed routes. The function logs a warning, only once, if TLS of a route
 * must be terminated but no fleet secret is set with which private keys could be decrypted.
 */
export function createMissingSecretWarning({
  fleetSecret,
  routes,
  log,
}: MissingSecretWarningOptions): (keys: readonly RouteKey[]) => void {
  let isWarned = fleetSecret !== undefined;
  return (keys) => {
    if (isWarned) return;
    isWarned = keys.some((key) => {
      const route = routes().get(key);
      return route !== undefined && terminatingTlsPort(route) !== undefined;
    });
    if (!isWarned) return;
    log.warn(
      { advice: 'set WEIR_FLEET_SECRET to the value that the controller has' },
      'WEIR_FLEET_SECRET is not set, so no private key can be decrypted; clients of ports that terminate TLS are refused',
    );
  };
}
