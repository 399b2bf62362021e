import type { Admission } from '../limits/admission.ts';
import { countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** What has its place under the limits. */
export interface AdmittedConnection {
  readonly info: DownstreamInfo;
  readonly admission: Admission;
}

export function refuse(stream: TcpStream, row: Float64Array, outcome: Outcome): void {
  countOutcome(row, outcome);
  stream.reset();
}

/** One that had its place already. */
export function refuseAdmitted(
  stream: TcpStream,
  { service }: Upstream,
  { grant, outcome }: { readonly grant: Admission; readonly outcome: Outcome },
): void {
  grant.release();
  refuse(stream, service.counters, outcome);
}
