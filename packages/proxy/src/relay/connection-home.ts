import type { Client, EndpointLoad, Route } from '@weir/model/data-plane';
import type { Shaper } from '../shape/shaper.ts';
import type { Transport } from '../tcp/transport.ts';
import type { Member } from './member.ts';
import type { Members } from './members.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';

/** What a connection needs of its worker. */
export interface RelayContext {
  readonly transport: Transport;
  readonly wheel: TimeoutWheel<Member>;
  readonly shaper: Shaper;
  /** A connection threw: a bug. It is over by then. */
  onInternalError(thrown: unknown): void;
  /** A connect failed; `code` as in errno. Some codes are of this host, not of the endpoint. */
  onConnectError(code: string | undefined): void;
}

/** Where a connection belongs: what it chooses from, and who must know of it. */
export interface ConnectionHome {
  readonly route: Route;
  readonly members: Members<Member>;
  /** An endpoint that is not among `tried`; undefined: none is left. */
  choose(client: Client, tried: readonly EndpointLoad[]): EndpointLoad | undefined;
  /** Whether `choose` would find one. Asking is no turn: it leaves everything as it is. */
  hasUntried(tried: readonly EndpointLoad[]): boolean;
  /** One that is not chosen because it does not work, as far as is known; undefined: none is left. */
  chooseUnused(tried: readonly EndpointLoad[]): EndpointLoad | undefined;
  onConnected(load: EndpointLoad): void;
  /** It refused, or did not answer in time. */
  onConnectFailed(load: EndpointLoad): void;
}
