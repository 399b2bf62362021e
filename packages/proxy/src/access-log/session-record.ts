// What one session counts for itself, beside the counters of its Service. Only a session that is logged has a record.
import type { Client } from '@weir/model/data-plane';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { CountedSessions } from '../relay/service-sessions.ts';
import type { AccessLog } from './access-log.ts';

export class SessionRecord {
  receivedBytes = 0;
  sentBytes = 0;
  /** In milliseconds of `Turns.nowMs`. */
  readonly startedAt: number;
  /** A copy, because the kernel gives no address after the end of the connection. */
  readonly client: Client;

  constructor({ address, port }: Client, startedAt: number) {
    this.client = { address, port };
    this.startedAt = startedAt;
  }
}

/** Returns the record of a new session, or undefined if the session is not logged. */
export function startRecord(
  accessLog: AccessLog,
  service: CountedSessions,
  { client, acceptedAt }: Pick<DownstreamInfo, 'client' | 'acceptedAt'>,
): SessionRecord | undefined {
  return accessLog.samples(service) ? new SessionRecord(client, acceptedAt ?? accessLog.now()) : undefined;
}
