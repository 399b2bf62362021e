import {
  expectsClientHello,
  type NetworkSet,
  type Route,
  routeRefusalFor,
  terminatingTlsPort,
} from '@weir/model/data-plane';
import type { Admission } from '../limits/admission.ts';
import type { DescriptorLimiter } from '../limits/descriptor-limit.ts';
import type { Outcome } from '../metering/outcome.ts';
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
import {
  PendingConnection,
  type PendingConnectionOptions,
  type PendingConnections,
  type PrereadSteps,
  type RoutingDecision,
} from './pending-connection.ts';
import { refuse } from './refuse.ts';
import { SessionStarter } from './session-starter.ts';

// One TCP listener of a worker: what happens to a connection from accept until it is refused or relayed.
export interface TcpListenerOptions {
  readonly context: RelayContext;
  /** Absent: nobody looks. */
  readonly descriptorLimiter?: DescriptorLimiter | undefined;
  /** From these every connection begins with a PROXY header. */
  readonly trustedProxies: NetworkSet;
  /** Whose listener it is now; undefined: nobody's, or not of one alone. */
  upstream(): Upstream | undefined;
  /** Whether several share it now. */
  isShared(): boolean;
  /** Of those who share it, who is known by this name; null: the client gives none. */
  upstreamFor(serverName: string | null): Upstream | undefined;
  /** Where TLS ends here. */
  readonly certificates: TlsContexts;
  /** Those who have not said yet whom they want. */
  readonly pendingConnections: PendingConnections;
  /** A place under the limits for one more connection of this Service, or why there is none; null: of nobody yet. */
  admit(uid: string | null): Admission | Outcome;
  /** Counted where nobody can be billed. */
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

  constructor(at: TcpListenOptions, options: TcpListenerOptions) {
    this.#address = at;
    this.#options = options;
    this.#socket = options.context.transport.listen(at, this);
    const { context, certificates } = options;
    this.#sessionStarter = new SessionStarter({
      context,
      certificates,
      onError: (stream, thrown) => this.#fail(stream, thrown),
    });
  }

  /** What came through it goes on. */
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
    const home = this.#options.upstream();
    if (home === undefined) this.#acceptShared(stream);
    else if (home.service.isSuspended) refuse(stream, home.service.counters, 'cut-off');
    else if (this.#options.descriptorLimiter?.admits() === false)
      refuse(stream, home.service.counters, 'no-descriptors');
    else if (this.#needsClientAddress(home) && stream.remoteAddress === '')
      refuse(stream, home.service.counters, 'client-gone');
    else {
      const needs = this.#prereadStepsFor(stream, home);
      if (needs.proxyHeader || needs.clientHello) this.#admitAndPreread(stream, home, needs);
      else this.#admitAndRelay(stream, home);
    }
  }

  #acceptShared(stream: AcceptedStream): void {
    const { pendingConnections, descriptorLimiter, trustedProxies, admit } = this.#options;
    if (!this.#options.isShared()) refuse(stream, pendingConnections.counters, 'no-listener');
    else if (descriptorLimiter?.admits() === false) refuse(stream, pendingConnections.counters, 'no-descriptors');
    else if (!trustedProxies.isEmpty && stream.remoteAddress === '')
      refuse(stream, pendingConnections.counters, 'client-gone');
    else {
      pendingConnections.evictOldestIfFull();
      const grant = admit(null);
      if (typeof grant === 'string') refuse(stream, pendingConnections.counters, grant);
      else this.#prereadShared(stream, grant);
    }
  }

  /** A client that has gone by now has no address: what depends on it must not take it for a client without privileges. */
  #needsClientAddress({ route: { settings } }: Upstream): boolean {
    const { proxyProtocol, sourceRanges, limits } = settings;
    return (
      !this.#options.trustedProxies.isEmpty ||
      proxyProtocol !== null ||
      sourceRanges.length > 0 ||
      limits.connectionsPerClient !== null
    );
  }

  #prereadStepsFor(stream: TcpStream, home: Upstream | 'shared'): PrereadSteps {
    const { trustedProxies } = this.#options;
    return {
      proxyHeader: !trustedProxies.isEmpty && trustedProxies.contains(stream.remoteAddress),
      clientHello: home === 'shared' || expectsClientHello(home.route),
    };
  }

  #admitAndRelay(stream: AcceptedStream, home: Upstream): void {
    const info = downstreamInfoOf(this.#address, stream);
    const admission = routeRefusalFor(home.route, info.client) ?? this.#options.admit(home.service.entry.uid);
    if (typeof admission === 'string') refuse(stream, home.service.counters, admission);
    else this.#sessionStarter.relay(stream, home, { info, admission });
  }

  /** Something must be read of it first. */
  #admitAndPreread(stream: AcceptedStream, home: Upstream, preread: PrereadSteps): void {
    const admission = this.#options.admit(home.service.entry.uid);
    if (typeof admission === 'string') {
      refuse(stream, home.service.counters, admission);
      return;
    }
    this.#startPreread(stream, {
      preread,
      owner: home.service,
      admission,
      route: (arrived) => routeOnOwnListener(home, arrived, this.#hasCertificate),
      onRouted: (_stream, info) =>
        this.#sessionStarter.relayAfterPreread(
          stream,
          { routedTo: home, findCurrent: () => this.#options.upstream() },
          { info, admission },
        ),
    });
  }

  #prereadShared(stream: AcceptedStream, admission: Admission): void {
    const { pendingConnections, upstreamFor, admit } = this.#options;
    this.#startPreread(stream, {
      preread: this.#prereadStepsFor(stream, 'shared'),
      owner: pendingConnections,
      admission,
      route: (arrived) =>
        routeOnSharedListener(upstreamFor(arrived.serverName), arrived, {
          admit,
          hasCertificate: this.#hasCertificate,
        }),
      onRouted: (_stream, info, placed) => {
        const findCurrent = (): Upstream | undefined => upstreamFor(info.serverName);
        // It was judged just now: whose it is, has not changed since.
        this.#sessionStarter.relayAfterPreread(
          stream,
          { routedTo: findCurrent(), findCurrent },
          { info, admission: placed },
        );
      },
    });
  }

  #startPreread(
    stream: AcceptedStream,
    given: Pick<PendingConnectionOptions, 'preread' | 'owner' | 'admission' | 'route' | 'onRouted'>,
  ): void {
    const { wheel, onInternalError } = this.#options.context;
    try {
      new PendingConnection(stream, { ...given, destination: this.#address, wheel, onInternalError }).start();
    } catch (thrown) {
      given.admission.release();
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

// What becomes of a client by its ClientHello. Where several Services share a listener, its server name says whose it is, and only
// then it is known whose limits, source ranges and cut-offs concern it. Others have the port, too, so refusals are alerts.

/** Whether there is a certificate for this route that can be shown. */
export type HasCertificate = (route: Route) => boolean;

/** Of one whose Service has the listener alone, and a place for it. */
export function routeOnOwnListener(
  home: Upstream,
  { serverName }: Pick<DownstreamInfo, 'serverName'>,
  hasCertificate: HasCertificate,
): RoutingDecision {
  const isHere = terminatingTlsPort(home.route) !== undefined;
  if (!home.servesHost(serverName)) return { ...REFUSED_UNKNOWN_HOST, endsTls: isHere };
  if (isHere && !hasCertificate(home.route)) return REFUSED_NO_CERTIFICATE;
  return { kind: 'in', endsTls: isHere };
}

export interface SharedListenerRouting {
  readonly hasCertificate: HasCertificate;
  /** A place under the limits of the Service. */
  admit(uid: string): Admission | Outcome;
}

/** `home`: of the Service that has the name; undefined: nobody has. */
export function routeOnSharedListener(
  home: Upstream | undefined,
  { client }: Pick<DownstreamInfo, 'client'>,
  { hasCertificate, admit }: SharedListenerRouting,
): RoutingDecision {
  if (home === undefined) return REFUSED_UNKNOWN_HOST;
  const { service, route } = home;
  const isHere = terminatingTlsPort(route) !== undefined;
  const outcome = service.isSuspended ? 'cut-off' : routeRefusalFor(route, client);
  if (outcome !== undefined) {
    return { kind: 'refused', outcome, alert: ALERT_BY_OUTCOME[outcome], claim: { service }, endsTls: isHere };
  }
  if (isHere && !hasCertificate(route)) return { ...REFUSED_NO_CERTIFICATE, claim: { service } };
  const admission = admit(service.entry.uid);
  return typeof admission === 'string'
    ? { kind: 'refused', outcome: admission, alert: undefined, claim: { service }, endsTls: isHere }
    : { kind: 'in', claim: { service, admission }, endsTls: isHere };
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
  endsTls: true,
};

const ALERT_BY_OUTCOME: Readonly<Record<'cut-off' | 'source-range' | 'no-endpoints', TlsAlert>> = {
  'cut-off': TLS_ALERT.accessDenied,
  'source-range': TLS_ALERT.accessDenied,
  'no-endpoints': TLS_ALERT.internalError,
};
