// Starts the session of a connection that is routed and admitted, after a TLS handshake if Weir terminates TLS. Checks
// the route again, because the Service may have lost the listener or may have been suspended while the proxy waited for
// the client.
import { type Client, relaysHttp, terminatingTlsPort } from '@weir/model/data-plane';
import { Http2Session } from '../http/h2/http2-session.ts';
import { startsWithPreface } from '../http/h2/protocol.ts';
import type { HttpConnectionOptions } from '../http/http-connection-options.ts';
import { HttpSession } from '../http/http-session.ts';
import type { ErrorReason } from '../http/passes/error-answer.ts';
import type { RequestRouter } from '../http/request-router.ts';
import type { Admission, AdmissionRefusal } from '../limits/admission.ts';
import type { Outcome } from '../metering/outcome.ts';
import { clientAuthoritiesOf, type TlsContexts } from '../protocol/tls-contexts.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { RelayContext } from '../relay/session.ts';
import { TcpSession } from '../relay/tcp-session.ts';
import type { AcceptedStream, TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import {
  type AdmittedConnection,
  admitRequest,
  connectionRefusalFor,
  hasAccessLog,
  logRefusal,
  reasonForOutcome,
  refuse,
} from './refuse.ts';
import { TlsHandshake } from './tls-handshake.ts';

export interface SessionStarterOptions {
  readonly context: RelayContext;
  readonly certificates: TlsContexts;
  readonly router: RequestRouter;
  /** Admits one more connection of this Service, or returns why it is refused. `open`: see `AdmissionController.admit`. */
  admit(uid: string, open?: Admission): Admission | AdmissionRefusal;
  /** Called after an unexpected exception, when the admission has been released. The callee must close the stream. */
  onError(stream: TcpStream, thrown: unknown): void;
}

/**
 * The upstream to which a client was routed, and a function that returns the upstream to which the client would be
 * routed now.
 */
export interface PendingRoute {
  readonly routedTo: Upstream | undefined;
  findCurrent(): Upstream | undefined;
}

interface SecuredRoute extends PendingRoute {
  /** The CAs against which the TLS handshake verified the client's certificate, if any. */
  readonly clientAuthorities: string | null;
}

export class SessionStarter {
  readonly #options: SessionStarterOptions;
  /** What all HTTP sessions of the listener need. */
  readonly #http: Pick<HttpConnectionOptions, 'router' | 'admitTo' | 'startHttp2'>;

  constructor(options: SessionStarterOptions) {
    this.#options = options;
    this.#http = {
      router: options.router,
      admitTo: (upstream, { client }, open) => this.#admitTo(upstream, client, open),
      startHttp2: (stream, upstream, admitted) => this.#startSession(stream, upstream, admitted),
    };
  }

  /**
   * Relays a client whose preread and TLS handshake, if any, are complete. If anything throws, releases the admission
   * and rethrows.
   */
  relay(stream: TcpStream, upstream: Upstream, admitted: AdmittedConnection): void {
    const { info, admission } = admitted;
    try {
      if (admission.admitClient(upstream.route, info.client)) this.#startSession(stream, upstream, admitted);
      else this.#refuse(stream, upstream, { ...admitted, outcome: 'client-limit' });
    } catch (thrown) {
      admission.release();
      throw thrown;
    }
  }

  /** Relays a client after its preread. Starts a TLS handshake first if Weir terminates TLS. Does not throw. */
  relayAfterPreread(stream: AcceptedStream, pendingRoute: PendingRoute, admitted: AdmittedConnection): void {
    const { info, admission } = admitted;
    const proceed = (upstream: Upstream): void => {
      if (terminatingTlsPort(upstream.route) === undefined) this.relay(stream, upstream, admitted);
      else if (admission.admitClient(upstream.route, info.client))
        this.#startHandshake(stream, { ...pendingRoute, routedTo: upstream }, admitted);
      else this.#refuse(stream, upstream, { ...admitted, outcome: 'client-limit' });
    };
    this.#recheckRoute(stream, pendingRoute, { admitted, proceed });
  }

  /**
   * Checks the route again and calls `proceed` if the route is still valid. The check includes the source ranges,
   * because a PROXY header may have changed the client's address.
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
        this.#refuse(stream, routedTo, { ...admitted, outcome: 'no-listener' });
      else {
        const outcome = connectionRefusalFor(current, info.client);
        if (outcome === undefined) proceed(current);
        else this.#refuse(stream, current, { ...admitted, outcome });
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
    const tls = certificates.serverOptionsFor(upstream.route, info.prereadBytes);
    // The connection was accepted before TLS termination was configured, so its ClientHello was not read.
    if (!info.hasClientHello) this.#refuse(stream, upstream, { ...admitted, outcome: 'no-listener' });
    else if (tls === undefined) this.#refuse(stream, upstream, { ...admitted, outcome: 'no-certificate' });
    else {
      const { wheel, handshakes: queue, accessLog, onInternalError } = context;
      const clientAuthorities = clientAuthoritiesOf(upstream.route);
      const onSecured = (secured: TcpStream, admittedAndSecured: AdmittedConnection): void =>
        this.#relayAfterHandshake(secured, { ...pendingRoute, clientAuthorities }, admittedAndSecured);
      const now = (): number => certificates.now();
      const { service } = upstream;
      // Must be set now, because the window cannot be changed once the TLS connection has begun.
      stream.setWindow?.(context.buffers.of(admission.limiters.tenant).window);
      new TlsHandshake(stream, {
        tls,
        admitted,
        service,
        wheel,
        queue,
        accessLog,
        now,
        onInternalError,
        onSecured,
      }).start();
    }
  }

  #relayAfterHandshake(stream: TcpStream, securedRoute: SecuredRoute, admitted: AdmittedConnection): void {
    const proceed = (upstream: Upstream): void => {
      // The Service no longer terminates TLS. Its endpoints now expect TLS and must not get decrypted bytes.
      if (terminatingTlsPort(upstream.route) === undefined)
        this.#refuse(stream, upstream, { ...admitted, outcome: 'no-listener' });
      // The client CAs have changed since the handshake, which may not even have asked for a certificate.
      else if (clientAuthoritiesOf(upstream.route) !== securedRoute.clientAuthorities)
        this.#refuse(stream, upstream, { ...admitted, outcome: 'tls-handshake-failed' });
      else this.#startSession(stream, upstream, admitted);
    };
    this.#recheckRoute(stream, securedRoute, { admitted, proceed });
  }

  /** Refuses a connection that the limits have already admitted, and releases its admission. */
  #refuse(
    stream: TcpStream,
    { service }: Upstream,
    { info, admission, outcome }: AdmittedConnection & { readonly outcome: Outcome },
  ): void {
    const { accessLog } = this.#options.context;
    admission.release();
    if (hasAccessLog(service)) logRefusal(service, { outcome, accessLog, info });
    refuse(stream, service.counters, outcome);
  }

  /**
   * Admits the client of another Service's session, or returns why its request is refused. The session counts the
   * refusal.
   */
  #admitTo(upstream: Upstream, client: Client, open: Admission): Admission | ErrorReason {
    const { route } = upstream;
    const admission = admitRequest(upstream, { client, open }, this.#options.admit);
    if (typeof admission !== 'string' && admission.admitClient(route, client)) return admission;
    if (typeof admission !== 'string') admission.release();
    // The answer to the request counts the refusal. The connection continues, so it has no outcome yet.
    return reasonForOutcome(typeof admission === 'string' ? admission : 'client-limit');
  }

  #startSession(stream: TcpStream, upstream: Upstream, { info, admission }: AdmittedConnection): void {
    const { context } = this.#options;
    const { counters } = upstream.service;
    const options = { context, upstream, counters, admission };
    if (relaysHttp(upstream.route)) {
      const Session = speaksHttp2(info) ? Http2Session : HttpSession;
      new Session(stream, info, { ...options, ...this.#http }).start();
    } else new TcpSession(stream, info, options).start();
  }
}

/** Whether the client speaks HTTP/2, as ALPN or, without TLS, its first bytes show. */
function speaksHttp2({ tls, prereadBytes, http2 }: DownstreamInfo): boolean {
  return tls === undefined ? http2 !== undefined || startsWithPreface(prereadBytes) : tls.alpn === 'h2';
}
