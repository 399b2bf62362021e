// The TLS server contexts of Services whose TLS is terminated here. A context is made from a certificate entry when the first
// client connects. A renewed certificate therefore applies to the next handshake, and open connections are not affected.
import { constants, createHash } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { type CertificateEntry, type Route, terminatingTlsPort } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import { loadNodeTls } from '../transport/tls/node-tls.ts';
import type { TlsServerOptions } from '../transport/tls/tls-stream.ts';

/** Why this proxy cannot use a certificate. */
export type CertificateFault =
  /** The entry has no private key. */
  | 'no-key'
  /** The key was sealed with another secret, or is damaged. */
  | 'key-not-opened'
  /** OpenSSL rejects the certificate: certificate, key or CAs are broken or do not belong together. */
  | 'not-accepted';

/** A certificate that cannot be used, for the log. Contains no part of the certificate or the key. */
export interface CertificateFaultReport {
  /** `namespace/name` of the Service. */
  readonly service: string;
  /** Identifies the certificate entry. All workers report the same digest. */
  readonly digest: string;
  readonly why: CertificateFault;
  /** The error code of OpenSSL, or null if OpenSSL was not called. */
  readonly code: string | null;
}

export interface TlsContextsOptions {
  /** Undefined if this proxy does not have the fleet's secret; then it cannot open any key. */
  readonly sealer: Sealer | undefined;
  /** Milliseconds since the epoch. */
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

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#options.now();
  }

  /** Returns the options for a handshake, or undefined if the listener has no usable certificate. */
  serverOptionsFor(route: Route): TlsServerOptions | undefined {
    const { certificate, service, settings } = route;
    if (certificate === undefined) return undefined;
    const requestsClientCertificate = certificate.clientAuthorities !== null;
    // Settings and certificate may briefly have different revisions. No client may connect without a certificate meanwhile.
    if (!requestsClientCertificate && settings.tls?.clientCaSecret) return undefined;
    const context = this.#contextFor(certificate, service);
    if (context === undefined) return undefined;
    const alpn = encodeAlpn(terminatingTlsPort(route)?.alpn ?? []);
    return { context, alpn, requestsClientCertificate };
  }

  #contextFor(entry: CertificateEntry, service: ServiceName): SecureContext | undefined {
    const { sealer, now } = this.#options;
    if (sealer === undefined) return undefined;
    const ticketDay = Math.floor(now() / DAY_MS);
    const known = this.#cache.get(entry);
    if (known !== undefined && (known.ticketDay === ticketDay || known.context === undefined)) return known.context;
    const made = makeContext(entry, sealer, ticketDay);
    const context = 'why' in made ? undefined : made;
    this.#cache.set(entry, { context, ticketDay });
    if ('why' in made) {
      const { namespace, name } = service;
      this.#options.onCertificateFault({ service: `${namespace}/${name}`, digest: digestOf(entry), ...made });
    }
    return context;
  }
}

type ServiceName = Pick<Route['service'], 'namespace' | 'name'>;

const DAY_MS = 86_400_000;

interface CachedContext {
  readonly context: SecureContext | undefined;
  /** The day for which the session ticket keys were derived. */
  readonly ticketDay: number;
}

function makeContext(
  entry: CertificateEntry,
  sealer: Sealer,
  day: number,
): SecureContext | Pick<CertificateFaultReport, 'why' | 'code'> {
  const { sealedKey, keyDigest } = entry;
  if (sealedKey === undefined) return { why: 'no-key', code: null };
  const key = sealer.open(sealedKey, keyDigest);
  if (key === undefined) return { why: 'key-not-opened', code: null };
  try {
    return contextFor(entry, { key, ...deriveTicketKeys(entry, sealer, day) });
  } catch (thrown) {
    return { why: 'not-accepted', code: (thrown as NodeJS.ErrnoException).code ?? null };
  }
}

function contextFor(
  { chain, clientAuthorities }: CertificateEntry,
  { key, ticketKeys, sessionIdContext }: { key: string; ticketKeys: Buffer; sessionIdContext: string },
): SecureContext {
  return loadNodeTls().createSecureContext({
    cert: chain,
    key,
    // Without client certificates no CA is trusted. By default each context would hold all root CAs of Node.
    ca: clientAuthorities === null ? [] : clientAuthorities,
    minVersion: 'TLSv1.2',
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ticketKeys,
    sessionIdContext,
  });
}

const TICKET_KEY_BYTES = 48;
/** The length of a session id context. It is OpenSSL's maximum. */
const SESSION_ID_CONTEXT_BYTES = 32;

/**
 * Derives the session ticket keys of a day. Every worker of every proxy in the fleet derives the same keys, so that a
 * client may resume its session at any of them. The digest binds a ticket to the Service, its certificates and its
 * client CAs: an old ticket does not bypass a new client CA. A stolen ticket key opens the tickets of one day.
 */
function deriveTicketKeys(
  entry: CertificateEntry,
  sealer: Sealer,
  day: number,
): { readonly ticketKeys: Buffer; readonly sessionIdContext: string } {
  const digest = digestOf(entry);
  return {
    ticketKeys: sealer.derive(`tickets ${day} ${digest}`, TICKET_KEY_BYTES),
    sessionIdContext: digest.slice(0, SESSION_ID_CONTEXT_BYTES),
  };
}

function digestOf({ service, chain, keyDigest, clientAuthorities }: CertificateEntry): string {
  return createHash('sha256')
    .update(JSON.stringify([service, chain, keyDigest, clientAuthorities]))
    .digest('hex');
}

/** Encodes a protocol list (RFC 7301, 3.1). Caches the result for each list. */
function encodeAlpn(protocols: readonly string[]): Uint8Array {
  const known = ALPN_BYTES_CACHE.get(protocols);
  if (known !== undefined) return known;
  const bytes = Buffer.concat(protocols.map((protocol) => Buffer.from([protocol.length, ...Buffer.from(protocol)])));
  ALPN_BYTES_CACHE.set(protocols, bytes);
  return bytes;
}

const ALPN_BYTES_CACHE = new WeakMap<readonly string[], Uint8Array>();
