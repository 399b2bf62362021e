import type { SecureContext } from 'node:tls';
import {
  type CertificateEntry,
  type EndpointStats,
  type EndpointTlsTerms,
  endpointsExpectTls,
  endpointTlsTerms,
  type Route,
} from '@weir/model/data-plane';
import type { Sealer } from '@weir/runtime/sealing';
import type { HandshakeQueue } from '../accept/handshake-queue.ts';
import type { RelayContext } from '../relay/session.ts';
import type { TcpStream, TcpTransport } from '../transport/tcp-transport.ts';
import { loadNodeTls } from '../transport/tls/node-tls.ts';
import type { TlsClientOptions } from '../transport/tls/node-tls-stream.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { EndpointHandshake, type HandshakeOwner } from './endpoint-handshake.ts';

const HTTP_1_1 = 'http/1.1';
const HTTP_2 = 'h2';

/**
 * TLS to the endpoints of one upstream: which certificates are accepted, which certificate the endpoints get, and the
 * sessions that can be resumed. A session belongs to one endpoint and to these terms, so that no session outlives the
 * certificates with which both sides were verified.
 */
export class EndpointTls {
  readonly serverName: string;
  /** The tenant in whose turns the handshakes with the endpoints run. */
  tenant: object;
  readonly #terms: CompleteTerms;
  readonly #queue: HandshakeTurns['queue'];
  readonly #context: SecureContext;
  readonly #sessions = new WeakMap<EndpointStats, Buffer>();
  /** Endpoints that have chosen HTTP/1.1 although HTTP/2 was offered. */
  readonly #http1Endpoints = new WeakSet<EndpointStats>();

  /** `key` is the private key of the certificate of the terms. Throws if OpenSSL does not accept a certificate. */
  constructor(terms: CompleteTerms, key: string | undefined, { queue, tenant }: HandshakeTurns) {
    const { serverName, authorities, certificate } = terms;
    this.serverName = serverName;
    this.tenant = tenant;
    this.#queue = queue;
    this.#terms = terms;
    this.#context = loadNodeTls().createSecureContext({
      ca: authorities,
      minVersion: 'TLSv1.2',
      ...(certificate && key !== undefined && { cert: certificate.chain, key }),
    });
  }

  /** Whether the connections and sessions of this object may be used under these terms. */
  matches({ serverName, authorities, certificate }: EndpointTlsTerms): boolean {
    const own = this.#terms;
    return (
      own.serverName === serverName &&
      own.authorities === authorities &&
      own.certificate?.chain === certificate?.chain &&
      own.certificate?.keyDigest === certificate?.keyDigest
    );
  }

  /** Whether HTTP/2 is offered to the endpoint. */
  offersHttp2To(stats: EndpointStats): boolean {
    return !this.#http1Endpoints.has(stats);
  }

  /** Connects to an endpoint for `owner`, and begins a TLS session that offers only HTTP/1.1. */
  connect(stats: EndpointStats, owner: HandshakeOwner, transport: TcpTransport): TcpStream {
    return this.#connect(stats, owner, { transport, alpn: [HTTP_1_1], onProtocol: () => undefined });
  }

  /** Connects to an endpoint for `owner`, and offers HTTP/2 and HTTP/1.1. `onChosen` is called just before `onConnect`. */
  connectWithHttp2(
    stats: EndpointStats,
    owner: HandshakeOwner,
    { transport, onChosen }: { readonly transport: TcpTransport; onChosen(isHttp2: boolean): void },
  ): TcpStream {
    const onProtocol = (protocol: string | undefined): void => {
      // RFC 9113 §3.2: without ALPN, a server with TLS does not speak HTTP/2.
      if (protocol !== HTTP_2) this.#http1Endpoints.add(stats);
      onChosen(protocol === HTTP_2);
    };
    return this.#connect(stats, owner, { transport, alpn: [HTTP_2, HTTP_1_1], onProtocol });
  }

  #connect(
    stats: EndpointStats,
    owner: HandshakeOwner,
    { transport, ...offer }: Pick<TlsClientOptions, 'alpn' | 'onProtocol'> & { readonly transport: TcpTransport },
  ): TcpStream {
    const tls = {
      context: this.#context,
      serverName: this.serverName,
      ...offer,
      session: this.#sessions.get(stats),
      onSession: (session: Buffer): void => void this.#sessions.set(stats, session),
    };
    const { tenant } = this;
    return new EndpointHandshake({ owner, tls, queue: this.#queue, tenant }).connect(stats.endpoint, transport);
  }
}

/** The queue in which handshakes with endpoints wait, and their tenant. */
export interface HandshakeTurns {
  readonly queue: Pick<HandshakeQueue, 'addBegun'>;
  readonly tenant: object;
}

/** Terms whose CAs and certificate are not missing. */
interface CompleteTerms extends EndpointTlsTerms {
  readonly authorities: string;
  readonly certificate: CertificateEntry | null;
}

interface CachedTls {
  readonly route: Route;
  readonly tls: EndpointTls | 'none' | 'missing';
}

const tlsByUpstream = new WeakMap<Upstream, CachedTls>();

/**
 * Returns the TLS for the endpoints of an upstream; `none` if the endpoints expect no TLS; `missing` if the CAs, or the
 * certificate that the endpoints get, are missing or not accepted by OpenSSL, so that no endpoint may be connected.
 */
export function endpointTlsOf(
  upstream: Upstream,
  { sealer, handshakes }: Pick<RelayContext, 'sealer' | 'handshakes'>,
  tenant: object,
): CachedTls['tls'] {
  const { route } = upstream;
  if (!endpointsExpectTls(route)) return 'none';
  let cached = tlsByUpstream.get(upstream);
  if (cached?.route !== route) {
    cached = { route, tls: tlsFor(route, { former: cached?.tls, sealer, turns: { queue: handshakes, tenant } }) };
    tlsByUpstream.set(upstream, cached);
  }
  const { tls } = cached;
  if (tls instanceof EndpointTls) tls.tenant = tenant;
  return tls;
}

interface TlsInput {
  readonly former: CachedTls['tls'] | undefined;
  readonly sealer: Sealer | undefined;
  readonly turns: HandshakeTurns;
}

function tlsFor(route: Route, { former, sealer, turns }: TlsInput): CachedTls['tls'] {
  const terms = endpointTlsTerms(route);
  if (terms === undefined) return 'none';
  const { serverName, authorities, certificate } = terms;
  if (authorities === undefined || certificate === undefined) return 'missing';
  // A new route with the same terms keeps the sessions and the idle connections.
  if (former instanceof EndpointTls && former.matches(terms)) return former;
  const key = certificate?.sealedKey && sealer?.open(certificate.sealedKey, certificate.keyDigest);
  if (certificate !== null && key === undefined) return 'missing';
  try {
    return new EndpointTls({ serverName, authorities, certificate }, key, turns);
  } catch {
    return 'missing';
  }
}
