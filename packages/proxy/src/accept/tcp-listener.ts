// The path of a TCP connection and its bytes:
// 1. `TcpListener` (here) accepts the connection and admits it by suspension, descriptors, source ranges and limits.
// 2. `PendingConnection` reads a PROXY header, ClientHello or request head, if the route needs it, and asks for a
//    `RoutingDecision`.
// 3. `SessionStarter` checks the route again and terminates TLS (`TlsHandshake`) if the Service asks for it.
// 4. `TcpSession` (relay/tcp-session.ts) connects to an endpoint and relays, throttles and counts the bytes until the
//    end. For a Service that speaks HTTP, `HttpSession` or `Http2Session` (http/) does this for each request.
import {
  expectsClientHello,
  hasSameCredentials,
  type NetworkSet,
  type Route,
  terminatingTlsPort,
} from '@weir/model/data-plane';
import type { RequestRouter } from '../http/request-router.ts';
import type { Admission, AdmissionRefusal } from '../limits/admission.ts';
import type { DescriptorLimiter } from '../limits/descriptor-limit.ts';
import type { Outcome } from '../metering/outcome.ts';
import { hasCertificateFor } from '../protocol/choose-certificate.ts';
import { TLS_ALERT, type TlsAlert } from '../protocol/tls-alert.ts';
import type { TlsContexts } from '../protocol/tls-contexts.ts';
import { type DownstreamInfo, downstreamInfoOf } from '../relay/downstream-info.ts';
import type { RelayContext } from '../relay/session.ts';
import type {
  AcceptedStream,
  TcpListenOptions,
  TcpListenSocket,
  TcpListenSocketEvents,
  TcpStream,
} from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { routeFirstRequest } from './first-request.ts';
import {
  PendingConnection,
  type PendingConnectionOptions,
  type PrereadSteps,
  type RoutingDecision,
} from './pending-connection.ts';
import type { PendingConnections } from './pending-connections.ts';
import { connectionRefusalFor, hasAccessLog, isCutOff, logRefusal, refuse } from './refuse.ts';
import { SessionStarter } from './session-starter.ts';

export interface TcpListenerOptions {
  readonly context: RelayContext;
  /** Limits the number of open descriptors. If absent, the number is not limited. */
  readonly descriptorLimiter?: DescriptorLimiter | undefined;
  /** Connections from these networks must begin with a PROXY header. */
  readonly trustedProxies: NetworkSet;
  /**
   * Returns the upstream of the only Service that has the listener now, or undefined if no Service or several Services
   * have the listener.
   */
  upstream(): Upstream | undefined;
  /** Whether several Services share the listener now. */
  isShared(): boolean;
  /**
   * Returns the upstreams of the Services that share the listener and serve this server name. `serverName` is null if the
   * client sent none.
   */
  upstreamsFor(serverName: string | null): readonly Upstream[];
  readonly certificates: TlsContexts;
  readonly router: RequestRouter;
  readonly pendingConnections: PendingConnections;
  /**
   * Admits one more connection of the Service with this UID, or returns why the connection is refused. `uid` is null if
   * the Service is not known yet. `open`: see `AdmissionController.admit`.
   */
  admit(uid: string | null, open?: Admission): Admission | AdmissionRefusal;
  /** Returns the counters of connections that belong to no Service. */
  unroutedCounters(): Float64Array;
  onListening(): void;
  onFailed(code: string): void;
  onAcceptError(code: string): void;
}

export class TcpListener implements TcpListenSocketEvents {
  readonly #address: TcpListenOptions;
  readonly #options: TcpListenerOptions;
  readonly #socket: TcpListenSocket;
  readonly #sessionStarter: SessionStarter;

  constructor(address: TcpListenOptions, options: TcpListenerOptions) {
    this.#address = address;
    this.#options = options;
    this.#socket = options.context.transport.listen(address, this);
    const { context, certificates, router, admit } = options;
    this.#sessionStarter = new SessionStarter({
      context,
      router,
      admit,
      certificates,
      onError: (stream, thrown) => this.#fail(stream, thrown),
    });
  }

  /** Closes the listener. Accepted connections stay open. */
  close(): void {
    this.#socket.close();
  }

  onListening(): void {
    this.#options.onListening();
  }

  onFailed(code: string): void {
    this.#options.onFailed(code);
  }

  onAcceptError(code: string): void {
    this.#options.onAcceptError(code);
  }

  onConnection(stream: AcceptedStream): void {
    try {
      this.#accept(stream);
    } catch (thrown) {
      this.#fail(stream, thrown);
    }
  }

  #accept(stream: AcceptedStream): void {
    const upstream = this.#options.upstream();
    if (upstream === undefined) {
      this.#acceptShared(stream);
      return;
    }
    if (isCutOff(upstream)) this.#refuse(stream, upstream, 'cut-off');
    else if (this.#options.descriptorLimiter?.admits() === false) this.#refuse(stream, upstream, 'no-descriptors');
    else if (this.#needsClientAddress(upstream) && stream.remoteAddress === '')
      this.#refuse(stream, upstream, 'client-gone');
    else {
      const preread = this.#prereadStepsFor(stream, upstream);
      if (preread.proxyHeader || preread.clientHello) this.#admitAndPreread(stream, upstream, preread);
      else this.#admitAndRelay(stream, upstream);
    }
  }

  #acceptShared(stream: AcceptedStream): void {
    const { pendingConnections, descriptorLimiter, trustedProxies, admit } = this.#options;
    const { counters } = pendingConnections;
    if (!this.#options.isShared()) refuse(stream, counters, 'no-listener');
    else if (descriptorLimiter?.admits() === false) refuse(stream, counters, 'no-descriptors');
    else if (!trustedProxies.isEmpty && stream.remoteAddress === '') refuse(stream, counters, 'client-gone');
    else {
      pendingConnections.evictOldestIfFull();
      const admission = admit(null);
      if (typeof admission === 'string') refuse(stream, counters, admission);
      else this.#prereadShared(stream, admission);
    }
  }

  /**
   * Whether the client's address is needed: for a trusted network, a PROXY header, a source range or a limit. The
   * kernel gives no address for a client that has disconnected, so such a client is refused if its address is needed.
   */
  #needsClientAddress({ route: { settings } }: Upstream): boolean {
    const { proxyProtocol, sourceRanges, limits } = settings;
    return (
      !this.#options.trustedProxies.isEmpty ||
      proxyProtocol !== null ||
      sourceRanges.length > 0 ||
      limits.connectionsPerClient !== null ||
      limits.newConnectionsPerSecondPerClient !== undefined
    );
  }

  #prereadStepsFor(stream: TcpStream, upstream: Upstream | 'shared'): PrereadSteps {
    const { trustedProxies, router } = this.#options;
    return {
      proxyHeader: !trustedProxies.isEmpty && trustedProxies.contains(stream.remoteAddress),
      clientHello: upstream === 'shared' || expectsClientHello(upstream.route),
      requestHead: upstream === 'shared' && router.sharesPlainHttp,
    };
  }

  #admitAndRelay(stream: AcceptedStream, upstream: Upstream): void {
    const { service } = upstream;
    const info = downstreamInfoOf(this.#address, stream);
    const admission = connectionRefusalFor(upstream, info.client) ?? this.#options.admit(service.entry.uid);
    if (typeof admission === 'string') this.#refuse(stream, upstream, admission);
    else this.#sessionStarter.relay(stream, upstream, { info, admission });
  }

  #admitAndPreread(stream: AcceptedStream, upstream: Upstream, preread: PrereadSteps): void {
    const { service } = upstream;
    const admission = this.#options.admit(service.entry.uid);
    if (typeof admission === 'string') {
      this.#refuse(stream, upstream, admission);
      return;
    }
    this.#startPreread(stream, {
      preread,
      terminatesTls: terminatingTlsPort(upstream.route) !== undefined,
      owner: service,
      admission,
      routeRequest: () => REFUSED_UNKNOWN_HOST,
      route: (info) => routeOnOwnListener(upstream, info, { admission, hasCertificate: this.#hasCertificate }),
      onRouted: (_stream, info) =>
        this.#sessionStarter.relayAfterPreread(
          stream,
          { routedTo: upstream, findCurrent: () => this.#options.upstream() },
          { info, admission },
        ),
    });
  }

  #prereadShared(stream: AcceptedStream, admission: Admission): void {
    const { pendingConnections, upstreamsFor, admit, router } = this.#options;
    let routedTo: Upstream | undefined;
    this.#startPreread(stream, {
      preread: this.#prereadStepsFor(stream, 'shared'),
      owner: pendingConnections,
      admission,
      route: (info) => {
        const decision = routeOnSharedListener(upstreamsFor(info.serverName), info, {
          admit,
          hasCertificate: this.#hasCertificate,
        });
        routedTo = decision.upstream;
        return decision;
      },
      routeRequest: (info, head) => {
        const decision = routeFirstRequest(head, info, { router, admit });
        routedTo = decision.upstream;
        return decision;
      },
      onRouted: (_stream, info, admissionOfService) => {
        const findCurrent = (): Upstream | undefined =>
          info.hasClientHello
            ? upstreamsFor(info.serverName).find(({ service }) => service === routedTo?.service)
            : routedTo;
        this.#sessionStarter.relayAfterPreread(
          stream,
          { routedTo, findCurrent },
          { info, admission: admissionOfService },
        );
      },
    });
  }

  #refuse(stream: TcpStream, { service }: Upstream, outcome: Outcome): void {
    const { accessLog } = this.#options.context;
    if (hasAccessLog(service))
      logRefusal(service, { outcome, accessLog, info: downstreamInfoOf(this.#address, stream) });
    refuse(stream, service.counters, outcome);
  }

  #startPreread(
    stream: AcceptedStream,
    options: Omit<
      PendingConnectionOptions,
      'destination' | 'wheel' | 'queue' | 'accessLog' | 'onInternalError' | 'now'
    >,
  ): void {
    const { wheel, handshakes: queue, accessLog, onInternalError, transport } = this.#options.context;
    const { turns } = transport;
    const now = (): number => turns.nowMs;
    const common = { destination: this.#address, wheel, queue, accessLog, onInternalError, now };
    try {
      new PendingConnection(stream, { ...options, ...common }).start();
    } catch (thrown) {
      options.admission.release();
      throw thrown;
    }
  }

  readonly #hasCertificate: HasCertificate = (route) =>
    this.#options.certificates.serverOptionsFor(route) !== undefined;

  #fail(stream: TcpStream, thrown: unknown): void {
    this.#options.context.onInternalError(thrown);
    refuse(stream, this.#options.unroutedCounters(), 'internal');
  }
}

/** Reports whether this proxy has a usable certificate for the route. */
type HasCertificate = (route: Route) => boolean;

interface OwnListenerRouting {
  readonly hasCertificate: HasCertificate;
  readonly admission: Admission;
}

/**
 * Decides about a client after its ClientHello, on a listener that belongs to one Service. The Service's limits have
 * already admitted the connection, but not yet its ClientHello.
 */
function routeOnOwnListener(
  upstream: Upstream,
  { serverName }: Pick<DownstreamInfo, 'serverName'>,
  { hasCertificate, admission }: OwnListenerRouting,
): RoutingDecision {
  const terminatesTls = terminatingTlsPort(upstream.route) !== undefined;
  if (!upstream.servesHost(serverName)) return { ...REFUSED_UNKNOWN_HOST, terminatesTls };
  if (terminatesTls && !hasCertificate(upstream.route)) return REFUSED_NO_CERTIFICATE;
  if (!admission.admitHello()) return { kind: 'refused', outcome: 'rate-limit', alert: undefined, terminatesTls };
  return { kind: 'admitted', terminatesTls };
}

interface SharedListenerRouting {
  readonly hasCertificate: HasCertificate;
  /** Admits one more connection of this Service, or returns why it is refused. */
  admit(uid: string): Admission | AdmissionRefusal;
}

type SharedDecision = RoutingDecision & { readonly upstream?: Upstream };

/** How many of the Services that share a server name are asked to admit a connection. */
const MAX_ASKED_SERVICES = 16;

/**
 * Decides about a client of a shared listener after its ClientHello. Several Services share a server name only if they
 * serve HTTP. Any of them can then have the connection, because each request is routed again. The Services with a
 * certificate for the server name are asked first.
 */
function routeOnSharedListener(
  upstreams: readonly Upstream[],
  info: Pick<DownstreamInfo, 'client' | 'serverName'>,
  routing: SharedListenerRouting,
): SharedDecision {
  let refusal: SharedDecision | undefined;
  const asked = [...certifiedFirst(upstreams.slice(0, MAX_ASKED_SERVICES), info.serverName)];
  // A connection of a suspended Service is reset when the Suspension changes, so the other Services are asked first.
  asked.sort((a, b) => Number(a.service.isSuspended) - Number(b.service.isSuspended));
  for (const upstream of asked) {
    const decision = askService(upstream, info, routing);
    if (decision.kind === 'admitted') return { ...decision, upstream };
    refusal ??= decision;
  }
  return refusal ?? REFUSED_UNKNOWN_HOST;
}

/** Returns the upstreams in the same order, but with those that have a certificate for the server name first. */
function certifiedFirst(upstreams: readonly Upstream[], serverName: string | null): readonly Upstream[] {
  const [first] = upstreams;
  if (first === undefined || upstreams.length === 1 || serverName === null) return upstreams;
  if (upstreams.every(({ route }) => hasSameCredentials(route, first.route))) return upstreams;
  const isCertified = ({ route }: Upstream): boolean => hasCertificateFor(route.certificates, serverName);
  return [...upstreams.filter(isCertified), ...upstreams.filter((upstream) => !isCertified(upstream))];
}

/** Checks suspension, source ranges and limits, because the Service was not known before. */
function askService(
  upstream: Upstream,
  { client }: Pick<DownstreamInfo, 'client'>,
  { hasCertificate, admit }: SharedListenerRouting,
): RoutingDecision {
  const { service, route } = upstream;
  const terminatesTls = terminatingTlsPort(route) !== undefined;
  const outcome = connectionRefusalFor(upstream, client);
  if (outcome !== undefined) {
    return { kind: 'refused', outcome, alert: ALERT_BY_OUTCOME[outcome], newOwner: { service }, terminatesTls };
  }
  if (terminatesTls && !hasCertificate(route)) return { ...REFUSED_NO_CERTIFICATE, newOwner: { service } };
  const admission = admit(service.entry.uid);
  return typeof admission === 'string'
    ? { kind: 'refused', outcome: admission, alert: undefined, newOwner: { service }, terminatesTls }
    : { kind: 'admitted', newOwner: { service, admission }, terminatesTls };
}

const REFUSED_UNKNOWN_HOST: RoutingDecision = {
  kind: 'refused',
  outcome: 'unknown-host',
  alert: TLS_ALERT.unrecognizedName,
};

const REFUSED_NO_CERTIFICATE: RoutingDecision = {
  kind: 'refused',
  outcome: 'no-certificate',
  alert: TLS_ALERT.internalError,
  terminatesTls: true,
};

const ALERT_BY_OUTCOME: Readonly<Record<'cut-off' | 'source-range' | 'no-endpoints', TlsAlert>> = {
  'cut-off': TLS_ALERT.accessDenied,
  'source-range': TLS_ALERT.accessDenied,
  'no-endpoints': TLS_ALERT.internalError,
};
