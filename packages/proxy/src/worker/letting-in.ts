// What becomes of a client when it is known whose it is and it has its place under the limits: TLS ends where it is to end here,
// and then it is relayed. Whatever was waited for, the Service may have lost the listener meanwhile, or be cut off.
import { endsTls, refusalFor } from '@weir/model/data-plane';
import { Connection } from '../relay/connection.ts';
import type { RelayContext } from '../relay/connection-home.ts';
import type { AcceptedStream, TcpStream } from '../tcp/transport.ts';
import type { SecureContexts } from '../tls/secure-contexts.ts';
import { Handshake } from './handshake.ts';
import { giveBack, type Placed } from './refuse.ts';
import type { RouteHome } from './route-home.ts';

export interface LettingInOptions {
  readonly context: RelayContext;
  readonly certificates: SecureContexts;
  /** A bug: of a connection that has no place any more. */
  onFail(stream: TcpStream, thrown: unknown): void;
}

/** By whom a client was taken, and who would take it now. */
export interface Waited {
  readonly former: RouteHome | undefined;
  find(): RouteHome | undefined;
}

/** With whom TLS was agreed on; `authorities`: of the CAs that it had to show a certificate of. */
interface Secured extends Waited {
  readonly authorities: string | null | undefined;
}

export class LettingIn {
  readonly #options: LettingInOptions;

  constructor(options: LettingInOptions) {
    this.#options = options;
  }

  /** Of whom nothing had to be read. Whatever throws, the place is given back first. */
  relay(stream: TcpStream, home: RouteHome, placed: Placed): void {
    const { arrived, grant } = placed;
    try {
      if (grant.capClient(home.route, arrived.client)) this.#connect(stream, home, placed);
      else giveBack(stream, home, { grant, outcome: 'client-limit' });
    } catch (thrown) {
      grant.release();
      throw thrown;
    }
  }

  /** Of whom something was read. */
  later(stream: AcceptedStream, waited: Waited, placed: Placed): void {
    const { arrived, grant } = placed;
    const goOn = (home: RouteHome): void => {
      if (endsTls(home.route) === undefined) this.relay(stream, home, placed);
      else if (grant.capClient(home.route, arrived.client))
        this.#shakeHands(stream, { ...waited, former: home }, placed);
      else giveBack(stream, home, { grant, outcome: 'client-limit' });
    };
    this.#again(stream, waited, { placed, goOn });
  }

  /** Only now may it be known who the client is. */
  #again(
    stream: TcpStream,
    { former, find }: Waited,
    { placed, goOn }: { readonly placed: Placed; readonly goOn: (home: RouteHome) => void },
  ): void {
    const { arrived, grant } = placed;
    try {
      if (former === undefined) throw new Error('a client is let in to nobody');
      const home = find();
      if (home?.group !== former.group) giveBack(stream, former, { grant, outcome: 'no-listener' });
      else if (home.group.isCutOff) giveBack(stream, home, { grant, outcome: 'cut-off' });
      else {
        const outcome = refusalFor(home.route, arrived.client);
        if (outcome === undefined) goOn(home);
        else giveBack(stream, home, { grant, outcome });
      }
    } catch (thrown) {
      grant.release();
      this.#options.onFail(stream, thrown);
    }
  }

  #shakeHands(stream: AcceptedStream, waited: Waited & { readonly former: RouteHome }, placed: Placed): void {
    const { context, certificates } = this.#options;
    const { former: home } = waited;
    const { arrived, grant } = placed;
    const terms = certificates.termsFor(home.route);
    // Without a hello it came before TLS was to end here.
    if (!arrived.hasHello) giveBack(stream, home, { grant, outcome: 'no-listener' });
    else if (terms === undefined) giveBack(stream, home, { grant, outcome: 'no-certificate' });
    else {
      const { wheel, onInternalError } = context;
      const authorities = authoritiesOf(home);
      const letIn = (secured: TcpStream, agreed: Placed): void =>
        this.#letSecuredIn(secured, { ...waited, authorities }, agreed);
      const now = (): number => certificates.now();
      new Handshake(stream, { terms, placed, group: home.group, wheel, now, onInternalError, letIn }).start();
    }
  }

  #letSecuredIn(stream: TcpStream, waited: Secured, placed: Placed): void {
    const { grant } = placed;
    const goOn = (home: RouteHome): void => {
      // What was decrypted must not reach an endpoint that expects TLS from now on.
      if (endsTls(home.route) === undefined) giveBack(stream, home, { grant, outcome: 'no-listener' });
      // Who it is was not asked, or of other CAs.
      else if (authoritiesOf(home) !== waited.authorities)
        giveBack(stream, home, { grant, outcome: 'tls-handshake-failed' });
      else this.#connect(stream, home, placed);
    };
    this.#again(stream, waited, { placed, goOn });
  }

  #connect(stream: TcpStream, home: RouteHome, { arrived, grant }: Placed): void {
    new Connection(stream, arrived, { context: this.#options.context, home, row: home.group.row, grant }).start();
  }
}

function authoritiesOf({ route }: RouteHome): string | null | undefined {
  return route.certificate?.clientAuthorities;
}
