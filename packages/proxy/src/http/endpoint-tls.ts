import type { SecureContext } from 'node:tls';
import { type EndpointStats, endpointTlsTerms, type Route } from '@weir/model/data-plane';
import type { SocketAddress, StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { loadNodeTls } from '../transport/tls/node-tls.ts';
import { connectTls } from '../transport/tls/tls-stream.ts';
import type { Upstream } from '../upstream/upstream.ts';

const HTTP_1_1 = 'http/1.1';

/**
 * TLS to the endpoints of one upstream: which certificates are accepted, and the sessions that can be resumed. A session
 * belongs to one endpoint and to these terms, so that no session outlives the CAs with which it was verified.
 */
export class EndpointTls {
  readonly serverName: string;
  readonly authorities: string;
  readonly #context: SecureContext;
  readonly #sessions = new WeakMap<EndpointStats, Buffer>();

  constructor(serverName: string, authorities: string) {
    this.serverName = serverName;
    this.authorities = authorities;
    this.#context = loadNodeTls().createSecureContext({ ca: authorities, minVersion: 'TLSv1.2' });
  }

  connect(stats: EndpointStats, events: StreamEvents): TcpStream {
    const to: SocketAddress = stats.endpoint;
    const options = {
      context: this.#context,
      serverName: this.serverName,
      alpn: HTTP_1_1,
      session: this.#sessions.get(stats),
      onSession: (session: Buffer): void => void this.#sessions.set(stats, session),
    };
    return connectTls(to, options, events);
  }
}

interface KnownTls {
  readonly route: Route;
  readonly tls: EndpointTls | 'none' | 'missing';
}

const KNOWN = new WeakMap<Upstream, KnownTls>();

/**
 * Returns the TLS for the endpoints of an upstream; `none` if the endpoints expect no TLS; `missing` if the CAs are missing or
 * not accepted by OpenSSL, so that no endpoint may be connected.
 */
export function endpointTlsOf(upstream: Upstream): EndpointTls | 'none' | 'missing' {
  const known = KNOWN.get(upstream);
  const { route } = upstream;
  if (known !== undefined && known.route === route) return known.tls;
  const tls = tlsFor(route, known?.tls);
  KNOWN.set(upstream, { route, tls });
  return tls;
}

function tlsFor(route: Route, former: KnownTls['tls'] | undefined): KnownTls['tls'] {
  const terms = endpointTlsTerms(route);
  if (terms === undefined) return 'none';
  const { serverName, authorities } = terms;
  if (authorities === undefined) return 'missing';
  // A new route with the same terms keeps the sessions and the idle connections.
  const isSame =
    former instanceof EndpointTls && former.serverName === serverName && former.authorities === authorities;
  if (isSame) return former;
  try {
    return new EndpointTls(serverName, authorities);
  } catch {
    return 'missing';
  }
}
