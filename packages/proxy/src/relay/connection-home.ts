import type { Client, EndpointStats, Route } from '@weir/model/data-plane';
import type { Shaper } from '../shape/shaper.ts';
import type { TcpTransport } from '../tcp/transport.ts';
import type { Session } from './member.ts';
import type { SessionSet } from './members.ts';
import type { TimeoutWheel } from './timeout-wheel.ts';

/** What a connection needs of its worker. */
export interface RelayContext {
  readonly transport: TcpTransport;
  readonly wheel: TimeoutWheel<Session>;
  readonly shaper: Shaper;
  /** A connection threw: a bug. It is over by then. */
  onInternalError(thrown: unknown): void;
  /** A connect failed; `code` as in errno. Some codes are of this host, not of the endpoint. */
  onConnectError(code: string | undefined): void;
}

/** Where a connection belongs: what it chooses from, and who must know of it. */
export interface RelayUpstream {
  readonly route: Route;
  readonly sessions: SessionSet<Session>;
  /** An endpoint that is not among `tried`; undefined: none is left. */
  choose(client: Client, tried: readonly EndpointStats[]): EndpointStats | undefined;
  /** Whether `choose` would find one. Asking is no turn: it leaves everything as it is. */
  hasUntriedEndpoint(tried: readonly EndpointStats[]): boolean;
  /** One that is not chosen because it does not work, as far as is known; undefined: none is left. */
  chooseExcluded(tried: readonly EndpointStats[]): EndpointStats | undefined;
  onConnected(load: EndpointStats): void;
  /** It refused, or did not answer in time. */
  onConnectFailed(load: EndpointStats): void;
}
