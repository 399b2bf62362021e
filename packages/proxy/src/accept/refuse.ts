import { type Client, type RouteRefusal, relaysHttp, routeRefusalFor } from '@weir/model/data-plane';
import type { AccessLog } from '../access-log/access-log.ts';
import type { EndedConnection } from '../access-log/connection-line.ts';
import type { ErrorReason } from '../http/passes/error-answer.ts';
import type { Admission, AdmissionRefusal } from '../limits/admission.ts';
import { countOutcome } from '../metering/counters.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
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

export interface RefusedConnection {
  readonly outcome: Outcome;
  readonly info: DownstreamInfo;
  readonly accessLog: AccessLog;
  /** The bytes that were received and sent before the refusal; absent for none. */
  readonly bytes?: Pick<EndedConnection, 'receivedBytes' | 'sentBytes'>;
}

/**
 * Logs a connection that is not relayed. Must be called before the connection is closed, because the kernel gives no
 * address afterwards. To be called only if `hasAccessLog` returns true, so that a Service without a log costs nothing.
 */
export function logRefusal(service: CountedSessions, { outcome, info, accessLog, bytes }: RefusedConnection): void {
  const { client, destination, acceptedAt } = info;
  const durationMs = acceptedAt === undefined ? 0 : accessLog.now() - acceptedAt;
  const common = { protocol: 'TCP', client, destination, info, outcome, durationMs } as const;
  accessLog.refuseConnection({ ...NOTHING_RELAYED, ...bytes, ...common }, service);
}

/** Logs a client that left an HTTP port before its first request, if the Service has an access log. */
export function logWithoutRequest(
  { upstream, info }: { readonly upstream: Upstream; readonly info: DownstreamInfo },
  accessLog: AccessLog,
  { outcome, receivedBytes }: { readonly outcome: Outcome; readonly receivedBytes: number },
): void {
  if (!hasAccessLog(upstream.service)) return;
  logRefusal(upstream.service, { outcome, info, accessLog, bytes: { receivedBytes, sentBytes: 0 } });
}

export function hasAccessLog({ entry }: CountedSessions): boolean {
  return entry?.settings?.accessLog !== undefined;
}

export const NOTHING_RELAYED = {
  receivedBytes: 0,
  sentBytes: 0,
  durationMs: 0,
  endpoint: undefined,
  attempts: 0,
} as const;

/** Whether a suspension refuses connections to the upstream. HTTP requests are answered with the reason instead. */
export function isCutOff({ service, route }: Upstream): boolean {
  return service.isSuspended && !relaysHttp(route);
}

/** Returns why connections of a client to the upstream are refused; undefined if they are not. */
export function connectionRefusalFor(upstream: Upstream, client: Client): RouteRefusal | 'cut-off' | undefined {
  if (isCutOff(upstream)) return 'cut-off';
  const refusal = routeRefusalFor(upstream.route, client);
  // The answer of a suspended Service needs no endpoint.
  return refusal === 'no-endpoints' && upstream.service.isSuspended ? undefined : refusal;
}

/** Why a Service does not admit a client whose request was routed to this Service. */
export type AdmissionOutcome = AdmissionRefusal | RouteRefusal | 'client-limit' | 'cut-off';

/**
 * Admits a connection to the Service to which a request was routed, or returns why the connection is refused. `open`:
 * see `AdmissionController.admit`.
 */
export function admitRequest(
  { service, route }: Upstream,
  { client, open }: { readonly client: Client; readonly open?: Admission },
  admit: (uid: string, open?: Admission) => Admission | AdmissionRefusal,
): Admission | AdmissionOutcome {
  const outcome = service.isSuspended ? 'cut-off' : routeRefusalFor(route, client);
  return outcome ?? admit(service.entry.uid, open);
}

/** Returns the reason of the answer to a request whose connection is refused with this outcome. */
export function reasonForOutcome(outcome: AdmissionOutcome): ErrorReason {
  switch (outcome) {
    case 'cut-off':
      return 'suspended';
    case 'source-range':
      return 'forbidden';
    default:
      return outcome;
  }
}
