// What clients are met with where TLS ends here: made of a certificate entry when the first of them asks, so that a renewed one
// holds for the next handshake, and open connections go on.
import { constants, createHash } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { type CertificateEntry, type Route, terminatingTlsPort } from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import { loadNodeTls } from '../transport/tls/node-tls.ts';
import type { TlsServerOptions } from '../transport/tls/tls-stream.ts';

/** Why a certificate cannot be used by this proxy. */
export type CertificateFault =
  /** The entry brings no private key. */
  | 'no-key'
  /** It was sealed under another secret, or is damaged. */
  | 'key-not-opened'
  /** OpenSSL does not take it: certificate, key or CAs are broken, or do not belong together. */
  | 'not-accepted';

/** Nothing of the certificate or key themselves is in it. */
export interface CertificateFaultReport {
  /** `namespace/name` of the Service. */
  readonly service: string;
  /** Of the entry: the same from each worker. */
  readonly digest: string;
  readonly why: CertificateFault;
  /** OpenSSL's; null: it was not asked. */
  readonly code: string | null;
}

export interface TlsContextsOptions {
  /** Undefined: this proxy has no secret of the fleet and can open no key. */
  readonly sealer: Sealer | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Once for each entry. */
  onCertificateFault(news: CertificateFaultReport): void;
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

  /** Undefined: there is no certificate that could be shown at this listener. */
  serverOptionsFor(route: Route): TlsServerOptions | undefined {
    const { certificate, service, settings } = route;
    if (certificate === undefined) return undefined;
    const requestsClientCertificate = certificate.clientAuthorities !== null;
    // Settings and certificate may be of different revisions for a moment; nobody gets in by that.
    if (!requestsClientCertificate && settings.tls?.clientCaSecret) return undefined;
    const context = this.#contextOf(certificate, service);
    if (context === undefined) return undefined;
    const alpn = encodeAlpn(terminatingTlsPort(route)?.alpn ?? []);
    return { context, alpn, requestsClientCertificate };
  }

  #contextOf(entry: CertificateEntry, service: ServiceName): SecureContext | undefined {
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
  /** Of its tickets. */
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
    // Where no client certificates are asked for, nobody is believed: by default each context would hold all CAs of the world.
    ca: clientAuthorities === null ? [] : clientAuthorities,
    minVersion: 'TLSv1.2',
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ticketKeys,
    sessionIdContext,
  });
}

const TICKET_KEY_BYTES = 48;
/** OpenSSL's most. */
const SESSION_ID_CONTEXT_BYTES = 32;

/**
 * Every worker and proxy of the fleet derives the same, so that a client may resume at any of them, and only at this Service, with
 * these certificates: past another client CA nobody comes by an old ticket. A stolen key opens the tickets of one day.
 */
function deriveTicketKeys(
  entry: CertificateEntry,
  sealer: Sealer,
  day: number,
): { readonly ticketKeys: Buffer; readonly sessionIdContext: string } {
  const of = digestOf(entry);
  return {
    ticketKeys: sealer.derive(`tickets ${day} ${of}`, TICKET_KEY_BYTES),
    sessionIdContext: of.slice(0, SESSION_ID_CONTEXT_BYTES),
  };
}

function digestOf({ service, chain, keyDigest, clientAuthorities }: CertificateEntry): string {
  return createHash('sha256')
    .update(JSON.stringify([service, chain, keyDigest, clientAuthorities]))
    .digest('hex');
}

/** RFC 7301, 3.1. Made once for each list. */
function encodeAlpn(protocols: readonly string[]): Uint8Array {
  const known = ALPN_BYTES_CACHE.get(protocols);
  if (known !== undefined) return known;
  const bytes = Buffer.concat(protocols.map((protocol) => Buffer.from([protocol.length, ...Buffer.from(protocol)])));
  ALPN_BYTES_CACHE.set(protocols, bytes);
  return bytes;
}

const ALPN_BYTES_CACHE = new WeakMap<readonly string[], Uint8Array>();
