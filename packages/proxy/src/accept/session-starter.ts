// What becomes of a client when it is known whose it is and it has its place under the limits: TLS ends where it is to end here,
// and then it is relayed. Whatever was waited for, the Service may have lost the listener meanwhile, or be cut off.
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
  /** A bug: of a connection that has no place any more. */
  onError(stream: TcpStream, thrown: unknown): void;
}

/** By whom a client was taken, and who would take it now. */
export interface PendingRoute {
  readonly routedTo: Upstream | undefined;
  findCurrent(): Upstream | undefined;
}

/** With whom TLS was agreed on; `authorities`: of the CAs that it had to show a certificate of. */
interface SecuredRoute extends PendingRoute {
  readonly clientAuthorities: string | null | undefined;
}

export class SessionStarter {
  readonly #options: SessionStarterOptions;

  constructor(options: SessionStarterOptions) {
    this.#options = options;
  }

  /** Of whom nothing had to be read. Whatever throws, the place is given back first. */
  relay(stream: TcpStream, home: Upstream, placed: AdmittedConnection): void {
    const { info, admission } = placed;
    try {
      if (admission.admitClient(home.route, info.client)) this.#startSession(stream, home, placed);
      else refuseAdmitted(stream, home, { grant: admission, outcome: 'client-limit' });
    } catch (thrown) {
      admission.release();
      throw thrown;
    }
  }

  /** Of whom something was read. */
  relayAfterPreread(stream: AcceptedStream, waited: PendingRoute, placed: AdmittedConnection): void {
    const { info, admission } = placed;
    const goOn = (home: Upstream): void => {
      if (terminatingTlsPort(home.route) === undefined) this.relay(stream, home, placed);
      else if (admission.admitClient(home.route, info.client))
        this.#startHandshake(stream, { ...waited, routedTo: home }, placed);
      else refuseAdmitted(stream, home, { grant: admission, outcome: 'client-limit' });
    };
    this.#recheckRoute(stream, waited, { placed, goOn });
  }

  /** Only now may it be known who the client is. */
  #recheckRoute(
    stream: TcpStream,
    { routedTo, findCurrent }: PendingRoute,
    { placed, goOn }: { readonly placed: AdmittedConnection; readonly goOn: (home: Upstream) => void },
  ): void {
    const { info, admission } = placed;
    try {
      if (routedTo === undefined) throw new Error('a client is let in to nobody');
      const home = findCurrent();
      if (home?.service !== routedTo.service)
        refuseAdmitted(stream, routedTo, { grant: admission, outcome: 'no-listener' });
      else if (home.service.isSuspended) refuseAdmitted(stream, home, { grant: admission, outcome: 'cut-off' });
      else {
        const outcome = routeRefusalFor(home.route, info.client);
        if (outcome === undefined) goOn(home);
        else refuseAdmitted(stream, home, { grant: admission, outcome });
      }
    } catch (thrown) {
      admission.release();
      this.#options.onError(stream, thrown);
    }
  }

  #startHandshake(
    stream: AcceptedStream,
    waited: PendingRoute & { readonly routedTo: Upstream },
    admitted: AdmittedConnection,
  ): void {
    const { context, certificates } = this.#options;
    const { routedTo: home } = waited;
    const { info, admission } = admitted;
    const tls = certificates.serverOptionsFor(home.route);
    // Without a hello it came before TLS was to end here.
    if (!info.hasClientHello) refuseAdmitted(stream, home, { grant: admission, outcome: 'no-listener' });
    else if (tls === undefined) refuseAdmitted(stream, home, { grant: admission, outcome: 'no-certificate' });
    else {
      const { wheel, onInternalError } = context;
      const clientAuthorities = clientAuthoritiesOf(home);
      const onSecured = (secured: TcpStream, agreed: AdmittedConnection): void =>
        this.#relayAfterHandshake(secured, { ...waited, clientAuthorities }, agreed);
      const now = (): number => certificates.now();
      new TlsHandshake(stream, {
        tls,
        admitted,
        service: home.service,
        wheel,
        now,
        onInternalError,
        onSecured,
      }).start();
    }
  }

  #relayAfterHandshake(stream: TcpStream, waited: SecuredRoute, placed: AdmittedConnection): void {
    const { admission } = placed;
    const goOn = (home: Upstream): void => {
      // What was decrypted must not reach an endpoint that expects TLS from now on.
      if (terminatingTlsPort(home.route) === undefined)
        refuseAdmitted(stream, home, { grant: admission, outcome: 'no-listener' });
      // Who it is was not asked, or of other CAs.
      else if (clientAuthoritiesOf(home) !== waited.clientAuthorities)
        refuseAdmitted(stream, home, { grant: admission, outcome: 'tls-handshake-failed' });
      else this.#startSession(stream, home, placed);
    };
    this.#recheckRoute(stream, waited, { placed, goOn });
  }

  #startSession(stream: TcpStream, home: Upstream, { info, admission }: AdmittedConnection): void {
    new TcpSession(stream, info, {
      context: this.#options.context,
      home,
      row: home.service.counters,
      grant: admission,
    }).start();
  }
}

function clientAuthoritiesOf({ route }: Upstream): string | null | undefined {
  return route.certificate?.clientAuthorities;
}
