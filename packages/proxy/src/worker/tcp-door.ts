// One TCP listener of a worker: what happens to a connection from accept until it is refused or relayed.
import { expectsClientHello, type Networks, refusalFor } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import type { Outcome } from '../counters/outcome.ts';
import { arrivedAt } from '../relay/arrived.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import type { AcceptedStream, ListenAt, ListenerEvents, TcpListener, TcpStream } from '../tcp/transport.ts';
import type { SecureContexts } from '../tls/secure-contexts.ts';
import { Arrival, type ArrivalNeeds, type ArrivalOptions } from './arrival.ts';
import type { DescriptorRoom } from './descriptor-room.ts';
import { type HasCertificate, judgeOwn, judgeStranger } from './judge-hello.ts';
import { LettingIn } from './letting-in.ts';
import { refuse } from './refuse.ts';
import type { RouteHome } from './route-home.ts';
import type { Strangers } from './strangers.ts';

export interface TcpDoorOptions {
  readonly context: RelayContext;
  /** Absent: nobody looks. */
  readonly descriptors?: DescriptorRoom | undefined;
  /** From these every connection begins with a PROXY header. */
  readonly trusted: Networks;
  /** Whose listener it is now; undefined: nobody's, or not of one alone. */
  home(): RouteHome | undefined;
  /** Whether several share it now. */
  isShared(): boolean;
  /** Of those who share it, who is known by this name; null: the client gives none. */
  homeOf(serverName: string | null): RouteHome | undefined;
  /** Where TLS ends here. */
  readonly certificates: SecureContexts;
  /** Those who have not said yet whom they want. */
  readonly strangers: Strangers;
  /** A place under the limits for one more connection of this Service, or why there is none; null: of nobody yet. */
  admit(uid: string | null): Grant | Outcome;
  /** Counted where nobody can be billed. */
  unrouted(): Float64Array;
  onListening(): void;
  onFailed(code: string): void;
  onAcceptError(code: string): void;
}

export class TcpDoor implements ListenerEvents {
  readonly #at: ListenAt;
  readonly #options: TcpDoorOptions;
  readonly #listener: TcpListener;
  readonly #lettingIn: LettingIn;

  constructor(at: ListenAt, options: TcpDoorOptions) {
    this.#at = at;
    this.#options = options;
    this.#listener = options.context.transport.listen(at, this);
    const { context, certificates } = options;
    this.#lettingIn = new LettingIn({ context, certificates, onFail: (stream, thrown) => this.#fail(stream, thrown) });
  }

  /** What came through it goes on. */
  close(): void {
    this.#listener.close();
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
      this.#arrive(stream);
    } catch (thrown) {
      this.#fail(stream, thrown);
    }
  }

  #arrive(stream: AcceptedStream): void {
    const home = this.#options.home();
    if (home === undefined) this.#arriveAtShared(stream);
    else if (home.group.isCutOff) refuse(stream, home.group.row, 'cut-off');
    else if (this.#options.descriptors?.admits() === false) refuse(stream, home.group.row, 'no-descriptors');
    else if (this.#asksWho(home) && stream.remoteAddress === '') refuse(stream, home.group.row, 'client-gone');
    else {
      const needs = this.#needsOf(stream, home);
      if (needs.proxyHeader || needs.clientHello) this.#receive(stream, home, needs);
      else this.#letIn(stream, home);
    }
  }

  #arriveAtShared(stream: AcceptedStream): void {
    const { strangers, descriptors, trusted, admit } = this.#options;
    if (!this.#options.isShared()) refuse(stream, strangers.row, 'no-listener');
    else if (descriptors?.admits() === false) refuse(stream, strangers.row, 'no-descriptors');
    else if (!trusted.isEmpty && stream.remoteAddress === '') refuse(stream, strangers.row, 'client-gone');
    else {
      strangers.makeRoom();
      const grant = admit(null);
      if (typeof grant === 'string') refuse(stream, strangers.row, grant);
      else this.#receiveStranger(stream, grant);
    }
  }

  /** A client that has gone by now has no address: what depends on it must not take it for a client without privileges. */
  #asksWho({ route: { settings } }: RouteHome): boolean {
    const { proxyProtocol, sourceRanges, limits } = settings;
    return (
      !this.#options.trusted.isEmpty ||
      proxyProtocol !== null ||
      sourceRanges.length > 0 ||
      limits.connectionsPerClient !== null
    );
  }

  #needsOf(stream: TcpStream, home: RouteHome | 'shared'): ArrivalNeeds {
    const { trusted } = this.#options;
    return {
      proxyHeader: !trusted.isEmpty && trusted.holds(stream.remoteAddress),
      clientHello: home === 'shared' || expectsClientHello(home.route),
    };
  }

  #letIn(stream: AcceptedStream, home: RouteHome): void {
    const arrived = arrivedAt(this.#at, stream);
    const grant = refusalFor(home.route, arrived.client) ?? this.#options.admit(home.group.service.uid);
    if (typeof grant === 'string') refuse(stream, home.group.row, grant);
    else this.#lettingIn.relay(stream, home, { arrived, grant });
  }

  /** Something must be read of it first. */
  #receive(stream: AcceptedStream, home: RouteHome, needs: ArrivalNeeds): void {
    const grant = this.#options.admit(home.group.service.uid);
    if (typeof grant === 'string') {
      refuse(stream, home.group.row, grant);
      return;
    }
    this.#startArrival(stream, {
      needs,
      group: home.group,
      grant,
      judge: (arrived) => judgeOwn(home, arrived, this.#hasCertificate),
      letIn: (_stream, arrived) =>
        this.#lettingIn.later(stream, { former: home, find: () => this.#options.home() }, { arrived, grant }),
    });
  }

  #receiveStranger(stream: AcceptedStream, grant: Grant): void {
    const { strangers, homeOf, admit } = this.#options;
    this.#startArrival(stream, {
      needs: this.#needsOf(stream, 'shared'),
      group: strangers,
      grant,
      judge: (arrived) =>
        judgeStranger(homeOf(arrived.serverName), arrived, { admit, hasCertificate: this.#hasCertificate }),
      letIn: (_stream, arrived, placed) => {
        const find = (): RouteHome | undefined => homeOf(arrived.serverName);
        // It was judged just now: whose it is, has not changed since.
        this.#lettingIn.later(stream, { former: find(), find }, { arrived, grant: placed });
      },
    });
  }

  #startArrival(
    stream: AcceptedStream,
    given: Pick<ArrivalOptions, 'needs' | 'group' | 'grant' | 'judge' | 'letIn'>,
  ): void {
    const { wheel, onInternalError } = this.#options.context;
    try {
      new Arrival(stream, { ...given, destination: this.#at, wheel, onInternalError }).start();
    } catch (thrown) {
      given.grant.release();
      throw thrown;
    }
  }

  readonly #hasCertificate: HasCertificate = (route) => this.#options.certificates.termsFor(route) !== undefined;

  #fail(stream: TcpStream, thrown: unknown): void {
    this.#options.context.onInternalError(thrown);
    refuse(stream, this.#options.unrouted(), 'internal');
  }
}
