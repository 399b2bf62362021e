// Starts the session of a connection that is routed and admitted, after a TLS handshake if TLS is terminated here.
// While the proxy waited for the client, the Service may have lost the listener or may have been suspended, so the
// route is checked again.
import { routeRefusalFor, terminatingTlsPort } from '@weir/model/data-plane';
import type { TlsContexts } from '../protocol/tls-contexts.ts';
import type { RelayContext } from '../relay/session.ts';
import { TcpSession } from '../relay/tcp-session.ts';
import type { AcceptedStream, TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { type AdmittedConnection, refuseAdmitted } from './refuse.ts';
import { TlsHandshake } from './tls-handshake.ts';

export interface SessionStarterOptions {
  readonly context: RelayContext;
  readonly certificates: TlsContexts;
  /** Called when a defect has ended this connection. Its admission is released. */
  onError(stream: TcpStream, thrown: unknown): void;
}

/** The upstream to which a client was routed, and the upstream to which it would be routed now. */
export interface PendingRoute {
  readonly routedTo: Upstream | undefined;
  findCurrent(): Upstream | undefined;
}

interface SecuredRoute extends PendingRoute {
  /** The CAs against which the client's certificate was verified in the handshake. */
  readonly clientAuthorities: string | null | undefined;
}

export class SessionStarter {
  readonly #options: SessionStarterOptions;

  constructor(options: SessionStarterOptions) {
    this.#options = options;
  }

  /** Relays a client that needs no preread. If anything throws, the admission is released first. */
  relay(stream: TcpStream, upstream: Upstream, admitted: AdmittedConnection): void {
    const { info, admission } = admitted;
    try {
      if (admission.admitClient(upstream.route, info.client)) this.#startSession(stream, upstream, admitted);
      else refuseAdmitted(stream, upstream, { admission, outcome: 'client-limit' });
    } catch (thrown) {
      admission.release();
      throw thrown;
    }
  }

  /** Relays a client after its preread. Does not throw. */
  relayAfterPreread(stream: AcceptedStream, pendingRoute: PendingRoute, admitted: AdmittedConnection): void {
    const { info, admission } = admitted;
    const proceed = (upstream: Upstream): void => {
      if (terminatingTlsPort(upstream.route) === undefined) this.relay(stream, upstream, admitted);
      else if (admission.admitClient(upstream.route, info.client))
        this.#startHandshake(stream, { ...pendingRoute, routedTo: upstream }, admitted);
      else refuseAdmitted(stream, upstream, { admission, outcome: 'client-limit' });
    };
    this.#recheckRoute(stream, pendingRoute, { admitted, proceed });
  }

  /**
   * Checks the route again. Also checks the source ranges, because a PROXY header may have changed the client address.
   */
  #recheckRoute(
    stream: TcpStream,
    { routedTo, findCurrent }: PendingRoute,
    { admitted, proceed }: { readonly admitted: AdmittedConnection; readonly proceed: (upstream: Upstream) => void },
  ): void {
    const { info, admission } = admitted;
    try {
      if (routedTo === undefined) throw new Error('an admitted connection has no upstream');
      const current = findCurrent();
      if (current?.service !== routedTo.service)
        refuseAdmitted(stream, routedTo, { admission, outcome: 'no-listener' });
      else if (current.service.isSuspended) refuseAdmitted(stream, current, { admission, outcome: 'cut-off' });
      else {
        const outcome = routeRefusalFor(current.route, info.client);
        if (outcome === undefined) proceed(current);
        else refuseAdmitted(stream, current, { admission, outcome });
      }
    } catch (thrown) {
      admission.release();
      this.#options.onError(stream, thrown);
    }
  }

  #startHandshake(
    stream: AcceptedStream,
    pendingRoute: PendingRoute & { readonly routedTo: Upstream },
    admitted: AdmittedConnection,
  ): void {
    const { context, certificates } = this.#options;
    const { routedTo: upstream } = pendingRoute;
    const { info, admission } = admitted;
    const tls = certificates.serverOptionsFor(upstream.route);
    // A client without a ClientHello was accepted before TLS termination was configured.
    if (!info.hasClientHello) refuseAdmitted(stream, upstream, { admission, outcome: 'no-listener' });
    else if (tls === undefined) refuseAdmitted(stream, upstream, { admission, outcome: 'no-certificate' });
    else {
      const { wheel, onInternalError } = context;
      const clientAuthorities = clientAuthoritiesOf(upstream);
      const onSecured = (secured: TcpStream, admittedAndSecured: AdmittedConnection): void =>
        this.#relayAfterHandshake(secured, { ...pendingRoute, clientAuthorities }, admittedAndSecured);
      const now = (): number => certificates.now();
      const { service } = upstream;
      new TlsHandshake(stream, { tls, admitted, service, wheel, now, onInternalError, onSecured }).start();
    }
  }

  #relayAfterHandshake(stream: TcpStream, securedRoute: SecuredRoute, admitted: AdmittedConnection): void {
    const { admission } = admitted;
    const proceed = (upstream: Upstream): void => {
      // Decrypted bytes must not reach an endpoint that expects TLS from now on.
      if (terminatingTlsPort(upstream.route) === undefined)
        refuseAdmitted(stream, upstream, { admission, outcome: 'no-listener' });
      // The client was verified against other CAs, or was not asked for a certificate.
      else if (clientAuthoritiesOf(upstream) !== securedRoute.clientAuthorities)
        refuseAdmitted(stream, upstream, { admission, outcome: 'tls-handshake-failed' });
      else this.#startSession(stream, upstream, admitted);
    };
    this.#recheckRoute(stream, securedRoute, { admitted, proceed });
  }

  #startSession(stream: TcpStream, upstream: Upstream, { info, admission }: AdmittedConnection): void {
    const { context } = this.#options;
    const { counters } = upstream.service;
    new TcpSession(stream, info, { context, upstream, counters, admission }).start();
  }
}

function clientAuthoritiesOf({ route }: Upstream): string | null | undefined {
  return route.certificate?.clientAuthorities;
}
