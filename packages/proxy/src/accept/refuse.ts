import type { Admission } from '../limits/admission.ts';
import { countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { TcpStream } from '../transport/tcp-transport.ts';
import type { Upstream } from '../upstream/upstream.ts';

export interface AdmittedConnection {
  readonly info: DownstreamInfo;
  readonly admission: Admission;
}

export function refuse(stream: TcpStream, counters: Float64Array, outcome: Outcome): void {
  countOutcome(counters, outcome);
  stream.reset();
}

/** Refuses a connection that the limits have already admitted, and releases its admission. */
export function refuseAdmitted(
  stream: TcpStream,
  { service }: Upstream,
  { admission, outcome }: { readonly admission: Admission; readonly outcome: Outcome },
): void {
  admission.release();
  refuse(stream, service.counters, outcome);
}
