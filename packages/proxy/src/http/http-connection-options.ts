import type { Admission } from '../limits/admission.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { RelayContext } from '../relay/session.ts';
import type { TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import type { RequestRouter } from './request-router.ts';

export interface HttpConnectionOptions {
  readonly context: RelayContext;
  readonly upstream: Upstream;
  readonly counters: Float64Array;
  /** See `CountedConnectionOptions`. */
  readonly byteCounters?: Float64Array;
  readonly admission: Admission;
  readonly router: RequestRouter;
  /**
   * Admits a connection to another Service, or returns why its requests are refused. `open` is the admission that the
   * connection has.
   */
  admitTo(upstream: Upstream, info: DownstreamInfo, open: Admission): Admission | ErrorReason;
  /** Starts an HTTP/2 session with the client of this session. `info.prereadBytes` are the client's first bytes. */
  startHttp2(client: TcpStream, upstream: Upstream, admitted: { info: DownstreamInfo; admission: Admission }): void;
}
