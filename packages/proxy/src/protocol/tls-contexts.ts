// The TLS server contexts of Services whose TLS Weir terminates. A context is created from a certificate entry when the
// first client that gets the certificate connects. A renewed certificate is a new entry. It applies from the next
// handshake on and does not affect open connections.
import { createHash } from 'node:crypto';
import { type CertificateEntry, type Route, terminatingTlsPort } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { TlsServer, TlsServerContext, TlsServerOptions } from '../transport/tls/tls-server.ts';
import { certificateRequestIn, chooseCertificate } from './choose-certificate.ts';

/** Why this proxy cannot use a certificate. */
export type CertificateFault =
  /** The entry has no private key. */
  | 'no-key'
  /** The key was encrypted with another secret, or is damaged. */
  | 'key-not-opened'
  /** OpenSSL rejects the certificate, because the certificate, key or CAs are broken or do not match. */
  | 'not-accepted';

/** A report for the log about a certificate that cannot be used. Contains no part of the certificate or the key. */
export interface CertificateFaultReport {
  /** `namespace/name` of the Service. */
  readonly service: string;
  /** The digest of the certificate entry. All workers report the same digest. */
  readonly digest: string;
  readonly why: CertificateFault;
  /** The error code of OpenSSL, or null if the fault was found without OpenSSL. */
  readonly code: string | null;
}

export interface TlsContextsOptions {
  readonly server: TlsServer;
  /**
   * Decrypts the private keys of certificates. Undefined if this proxy does not have the fleet's secret and therefore
   * cannot decrypt any key.
   */
  readonly sealer: Sealer | undefined;
  /** Returns the time in milliseconds since the epoch. */
  readonly now: () => number;
  /** Called once for each faulty certificate entry. */
  onCertificateFault(report: CertificateFaultReport): void;
}

export class TlsContexts {
  readonly #options: TlsContextsOptions;
  readonly #cache = new WeakMap<CertificateEntry, CachedContext>();

  constructor(options: TlsContextsOptions) {
    this.#options = options;
  }

  /** Returns the time in milliseconds since the epoch. */
  now(): number {
    return this.#options.now();
  }

  /**
   * Returns the options for a TLS handshake, or undefined if the route has no usable certificate. `prereadBytes` begin
   * with the client's ClientHello, which decides between several certificates. Without `prereadBytes`, uses the first
   * certificate.
   */
  serverOptionsFor(route: Route, prereadBytes?: Uint8Array): TlsServerOptions | undefined {
    const { certificates, service, settings } = route;
    const clientAuthorities = clientAuthoritiesOf(route);
    const requestsClientCertificate = clientAuthorities !== null;
    // For a short time, the settings of the route may be newer or older than its certificate entries. Even then no
    // client may connect without a required client certificate.
    if (!requestsClientCertificate && settings.tls?.clientCaSecret) return undefined;
    const request =
      prereadBytes === undefined || certificates.length < 2 ? undefined : certificateRequestIn(prereadBytes);
    const certificate = chooseCertificate(certificates, request);
    const context = certificate && this.#contextFor(certificate, clientAuthorities, service);
    if (certificate === undefined || context === undefined) return undefined;
    const alpn = encodeAlpn(terminatingTlsPort(route)?.alpn ?? []);
    return { context, alpn, requestsClientCertificate, staple: stapleFor(certificate, this.#options.now()) };
  }

  #contextFor(
    entry: CertificateEntry,
    clientAuthorities: string | null,
    service: ServiceName,
  ): TlsServerContext | undefined {
    const { server, sealer, now } = this.#options;
    if (sealer === undefined) return undefined;
    const ticketDay = Math.floor(now() / DAY_MS);
    const known = this.#cache.get(entry);
    if (
      known !== undefined &&
      known.clientAuthorities === clientAuthorities &&
      (known.ticketDay === ticketDay || known.context === undefined)
    )
      return known.context;
    const credentials = { ...entry, clientAuthorities };
    const made = makeContext(credentials, { server, sealer, day: ticketDay });
    const context = 'why' in made ? undefined : made;
    this.#cache.set(entry, { context, ticketDay, clientAuthorities });
    if ('why' in made) {
      const { namespace, name } = service;
      this.#options.onCertificateFault({ service: `${namespace}/${name}`, digest: digestOf(credentials), ...made });
    }
    return context;
  }
}

const STAPLES = new WeakMap<CertificateEntry, Uint8Array>();

/** Returns the OCSP response of a certificate while the response is valid. */
function stapleFor(entry: CertificateEntry, now: number): Uint8Array | undefined {
  const { ocsp } = entry;
  // RFC 6960 §4.2.2.1: a response is valid from thisUpdate on, and a newer response is available at nextUpdate.
  if (ocsp === undefined || now < ocsp.thisUpdate || now >= ocsp.nextUpdate) return undefined;
  const known = STAPLES.get(entry);
  if (known !== undefined) return known;
  const staple = Buffer.from(ocsp.response, 'base64');
  STAPLES.set(entry, staple);
  return staple;
}

type ServiceName = Pick<Route['service'], 'namespace' | 'name'>;

const DAY_MS = 86_400_000;

interface CachedContext {
  readonly context: TlsServerContext | undefined;
  /** The day for which the session ticket keys were derived. */
  readonly ticketDay: number;
  readonly clientAuthorities: string | null;
}

/** Returns the CAs of client certificates for a route, or null if clients need no certificate. */
export function clientAuthoritiesOf({ certificates }: Pick<Route, 'certificates'>): string | null {
  // Only the first certificate of a Service has the CAs. The route may lack it for a short time.
  for (const { clientAuthorities } of certificates) if (clientAuthorities !== null) return clientAuthorities;
  return null;
}

function makeContext(
  entry: CertificateEntry,
  { server, sealer, day }: { server: TlsServer; sealer: Sealer; day: number },
): TlsServerContext | Pick<CertificateFaultReport, 'why' | 'code'> {
  const { sealedKey, keyDigest, chain, clientAuthorities } = entry;
  if (sealedKey === undefined) return { why: 'no-key', code: null };
  const key = sealer.open(sealedKey, keyDigest);
  if (key === undefined) return { why: 'key-not-opened', code: null };
  const digest = digestOf(entry);
  try {
    return server.createContext({
      chain,
      key,
      clientAuthorities,
      cipherSuites: CIPHER_SUITES,
      sessionIdContext: digest.slice(0, SESSION_ID_CONTEXT_BYTES),
      // Every worker of every proxy in the fleet derives the same keys, so a client can resume its session at any
      // worker. The keys depend on a digest of the Service, its certificate and its client CAs, so that an old ticket
      // cannot bypass a new client CA. A stolen ticket key decrypts only the tickets of one day.
      deriveTicketKeys: (purpose, bytes) => sealer.derive(`${purpose} ${day} ${digest}`, bytes),
    });
  } catch (thrown) {
    return { why: 'not-accepted', code: (thrown as NodeJS.ErrnoException).code ?? null };
  }
}

/**
 * The cipher suites, preferred first. All have forward secrecy and authenticated encryption (RFC 9325 §4.2). TLS 1.2
 * prefers ECDSA, because its signatures take less CPU time. `choose-certificate.ts` knows the suites of TLS 1.2 by number.
 */
const CIPHER_SUITES = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/** The length of a session id context, which is the maximum that OpenSSL allows. */
const SESSION_ID_CONTEXT_BYTES = 32;

function digestOf({ service, chain, keyDigest, clientAuthorities }: CertificateEntry): string {
  return createHash('sha256')
    .update(JSON.stringify([service, chain, keyDigest, clientAuthorities]))
    .digest('hex');
}

/** Encodes a list of protocols in the wire format of ALPN (RFC 7301 §3.1). Caches the result for each list. */
function encodeAlpn(protocols: readonly string[]): Uint8Array {
  const known = ALPN_BYTES_CACHE.get(protocols);
  if (known !== undefined) return known;
  const bytes = Buffer.concat(protocols.map((protocol) => Buffer.from([protocol.length, ...Buffer.from(protocol)])));
  ALPN_BYTES_CACHE.set(protocols, bytes);
  return bytes;
}

const ALPN_BYTES_CACHE = new WeakMap<readonly string[], Uint8Array>();
