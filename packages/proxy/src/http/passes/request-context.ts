import type { EndpointStats } from '@weir/model/data-plane';
import type { RequestHeadParser } from '../h1/request-head.ts';
import type { EndpointCookie } from './endpoint-cookie.ts';
import type { ForwardedPeer } from './forwarded.ts';
import type { CompiledFilters } from './header-filters.ts';

/** A parsed request head. */
export type RequestHead = Pick<
  RequestHeadParser,
  | 'fields'
  | 'framing'
  | 'methodId'
  | 'methodStart'
  | 'methodEnd'
  | 'majorVersion'
  | 'minorVersion'
  | 'targetForm'
  | 'targetStart'
  | 'targetEnd'
  | 'pathStart'
  | 'hostStart'
  | 'hostEnd'
>;

/** What the request passes need to know, and what they find out. All connections of a worker use one record. */
export interface RequestContext {
  /** The request as it was parsed. */
  readonly head: RequestHead;
  /** The client's side of the connection. */
  peer: ForwardedPeer;
  /** The Host that the route asks for instead of the client's. */
  hostRewrite: Uint8Array | undefined;
  /** The target in origin-form that the route asks for, or whose normal form differs from the received target. */
  targetRewrite: Uint8Array | undefined;
  /**
   * The line Sec-WebSocket-Key with which the proxy asks for a WebSocket for an HTTP/2 client (RFC 8441). Undefined for
   * all other requests.
   */
  webSocketKeyLine: Uint8Array | undefined;
  /** The header filters of the route. */
  filters: CompiledFilters | undefined;
  /** The cookie that names the endpoint of the client. Undefined if the Service has no sticky cookie. */
  endpointCookie: EndpointCookie | undefined;
  /** Fills 16 bytes with random values. */
  fillRandom(this: void, memory: Uint8Array): void;

  /** Result: the endpoint that the cookie of the client names, if any. */
  cookieEndpoint: EndpointStats | undefined;
  /** Result: the options of Connection that the client sent, as bits of `CONNECTION_OPTION`. */
  connectionOptions: number;
  /** Result: whether the client waits for 100 (Continue). The caller answers `unknown` with 417. */
  expectation: 'none' | 'continue' | 'unknown';
  /** Result: whether the client uses HTTPS, to this proxy or, as a trusted peer says, to a proxy in front of this one. */
  isHttps: boolean;
  /** Result: whether the client asks for a WebSocket, so that the endpoint may answer 101. */
  isWebSocket: boolean;
  /** Result: whether the proxy made the request id. Otherwise the id is the received X-Request-Id. */
  isRequestIdMade: boolean;
  /** Result: the 16 bytes of the request id if `isRequestIdMade`. */
  readonly requestId: Uint8Array;
}
