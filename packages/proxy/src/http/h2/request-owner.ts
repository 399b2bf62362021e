import type { DownstreamInfo } from '../../relay/downstream-info.ts';
import type { Window } from '../../transport/tcp-transport.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import type { HttpConnection } from '../http-connection.ts';
import type { ForwardedPeer } from '../passes/forwarded.ts';
import type { Http2Connection } from './connection.ts';
import type { Http2Request } from './http2-request.ts';
import type { Http2Stream } from './stream.ts';

/** Applies the bandwidth limits of a Service to responses. */
export interface ResponsePacer {
  /** Charges sent bytes. Returns whether the endpoint of the request may be read. Otherwise `resumeEndpoint` follows. */
  mayRead(request: Http2Request, sentBytes: number): boolean;
  /** Whether the request will be resumed when the limits allow this. */
  waitsForBandwidth(request: Http2Request): boolean;
  /** Charges the last bytes of a response. Above the limits of the connection, the client's next requests wait. */
  endResponse(request: Http2Request, sentBytes: number): void;
}

/** The connection that carries the requests. */
export interface Http2RequestOwner extends Pick<HttpConnection, 'startLog'>, ResponsePacer {
  readonly connection: Http2Connection;
  readonly peer: ForwardedPeer;
  /** The upstream of the connection: that of the server name, of the listener, or of the first request. */
  readonly upstream: Upstream;
  readonly info: DownstreamInfo;
  readonly isFirstRequest: boolean;
  /** Milliseconds of the clock that measures requests. */
  readonly now: number;
  currentWindow(): Window;
  /** Sends frames soon. */
  flush(): void;
  /** Called when bytes of the request or its response have moved. */
  onProgress(): void;
  onRequestEnd(request: Http2Request, stream: Http2Stream): void;
  onThrow(thrown: unknown): void;
}
