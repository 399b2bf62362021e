// One TCP listener of a worker: what happens to a connection from accept until it is refused or relayed.
import { expectsClientHello, type Networks, refusalFor } from '@weir/model/data-plane';
import type { Grant } from '../admit/admit.ts';
import { countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import { type Arrived, arrivedAt } from '../relay/arrived.ts';
import { Connection } from '../relay/connection.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import type { ListenAt, ListenerEvents, TcpListener, TcpStream } from '../tcp/transport.ts';
import { ALERT } from '../tls/alert.ts';
import { Arrival, type ArrivalNeeds, type ArrivalOptions, type Verdict } from './arrival.ts';
import type { DescriptorRoom } from './descriptor-room.ts';
import { judgeStranger } from './judge-stranger.ts';
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

  constructor(at: ListenAt, options: TcpDoorOptions) {
    this.#at = at;
    this.#options = options;
    this.#listener = options.context.transport.listen(at, this);
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

  onConnection(stream: TcpStream): void {
    try {
      this.#arrive(stream);
    } catch (thrown) {
      this.#fail(stream, thrown);
    }
  }

  #arrive(stream: TcpStream): void {
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

  #arriveAtShared(stream: TcpStream): void {
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

  #letIn(stream: TcpStream, home: RouteHome): void {
    const arrived = arrivedAt(this.#at, stream);
    const grant = refusalFor(home.route, arrived.client) ?? this.#options.admit(home.group.service.uid);
    if (typeof grant === 'string') refuse(stream, home.group.row, grant);
    else this.#relay(stream, home, { arrived, grant });
  }

  /** Something must be read of it first. */
  #receive(stream: TcpStream, home: RouteHome, needs: ArrivalNeeds): void {
    const grant = this.#options.admit(home.group.service.uid);
    if (typeof grant === 'string') {
      refuse(stream, home.group.row, grant);
      return;
    }
    this.#startArrival(stream, {
      needs,
      group: home.group,
      grant,
      judge: ({ serverName }) => (home.isServed(serverName) ? { kind: 'in' } : UNKNOWN_HOST),
      letIn: (_stream, arrived) => this.#letInLater(stream, home, { arrived, grant }),
    });
  }

  #receiveStranger(stream: TcpStream, grant: Grant): void {
    const { strangers, homeOf, admit } = this.#options;
    this.#startArrival(stream, {
      needs: this.#needsOf(stream, 'shared'),
      group: strangers,
      grant,
      judge: (arrived) => judgeStranger(homeOf(arrived.serverName), arrived, admit),
      letIn: (_stream, arrived, placed) => this.#letInFound(stream, { arrived, grant: placed }),
    });
  }

  #startArrival(stream: TcpStream, given: Pick<ArrivalOptions, 'needs' | 'group' | 'grant' | 'judge' | 'letIn'>): void {
    const { wheel, onInternalError } = this.#options.context;
    try {
      new Arrival(stream, { ...given, destination: this.#at, wheel, onInternalError }).start();
    } catch (thrown) {
      given.grant.release();
      throw thrown;
    }
  }

  /** It was judged just now: whose it is, has not changed since. */
  #letInFound(stream: TcpStream, placed: Placed): void {
    try {
      const home = this.#options.homeOf(placed.arrived.serverName);
      if (home === undefined) throw new Error('a client is let in to nobody');
      this.#relay(stream, home, placed);
    } catch (thrown) {
      placed.grant.release();
      this.#fail(stream, thrown);
    }
  }

  /** The listener may be another Service's by now, or this one cut off; and only now is it known who the client is. */
  #letInLater(stream: TcpStream, former: RouteHome, { arrived, grant }: Placed): void {
    try {
      const home = this.#options.home();
      if (home?.group !== former.group) giveBack(stream, former, { grant, outcome: 'no-listener' });
      else if (home.group.isCutOff) giveBack(stream, home, { grant, outcome: 'cut-off' });
      else {
        const refusal = refusalFor(home.route, arrived.client);
        if (refusal === undefined) this.#relay(stream, home, { arrived, grant });
        else giveBack(stream, home, { grant, outcome: refusal });
      }
    } catch (thrown) {
      grant.release();
      this.#fail(stream, thrown);
    }
  }

  #relay(stream: TcpStream, home: RouteHome, { arrived, grant }: Placed): void {
    try {
      if (grant.capClient(home.route, arrived.client)) {
        const { context } = this.#options;
        new Connection(stream, arrived, { context, home, row: home.group.row, grant }).start();
      } else giveBack(stream, home, { grant, outcome: 'client-limit' });
    } catch (thrown) {
      grant.release();
      throw thrown;
    }
  }

  #fail(stream: TcpStream, thrown: unknown): void {
    this.#options.context.onInternalError(thrown);
    refuse(stream, this.#options.unrouted(), 'internal');
  }
}

const UNKNOWN_HOST: Verdict = { kind: 'refused', outcome: 'unknown-host', alert: ALERT.unrecognizedName };

/** What has its place under the limits. */
interface Placed {
  readonly arrived: Arrived;
  readonly grant: Grant;
}

function giveBack(
  stream: TcpStream,
  { group }: RouteHome,
  { grant, outcome }: { grant: Grant; outcome: Outcome },
): void {
  grant.release();
  refuse(stream, group.row, outcome);
}

function refuse(stream: TcpStream, row: Float64Array, outcome: Outcome): void {
  countOutcome(row, outcome);
  stream.reset();
}
