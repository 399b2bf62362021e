import type { Grant } from '../admit/admit.ts';
import { countOutcome } from '../counters/count.ts';
import type { Outcome } from '../counters/outcome.ts';
import type { DownstreamInfo } from '../relay/arrived.ts';
import type { TcpStream } from '../tcp/transport.ts';
import type { Upstream } from './route-home.ts';

/** What has its place under the limits. */
export interface AdmittedConnection {
  readonly info: DownstreamInfo;
  readonly grant: Grant;
}

export function refuse(stream: TcpStream, row: Float64Array, outcome: Outcome): void {
  countOutcome(row, outcome);
  stream.reset();
}

/** One that had its place already. */
export function refuseAdmitted(
  stream: TcpStream,
  { group }: Upstream,
  { grant, outcome }: { readonly grant: Grant; readonly outcome: Outcome },
): void {
  grant.release();
  refuse(stream, group.row, outcome);
}
