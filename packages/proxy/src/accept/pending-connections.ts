import type { CountedSessions } from '../relay/service-sessions.ts';
import type { Session } from '../relay/session.ts';

/**
 * The maximum number of pending connections of shared listeners in one worker. Each pending connection occupies a
 * descriptor, and up to 16 KiB for an incomplete ClientHello or 64 KiB for an incomplete head.
 */
const MAX_PENDING_CONNECTIONS = 1_024;

/**
 * The connections of shared listeners whose Service is not known yet, so that no tenant's limits apply to them. If
 * there are `MAX_PENDING_CONNECTIONS`, a new connection ends the oldest. A flood of silent clients therefore evicts
 * other silent clients, and not clients that send a ClientHello or request at once.
 */
export class PendingConnections implements CountedSessions {
  /** The pending connections in the order in which they were accepted. */
  readonly sessions: Set<Session> = new Set();
  readonly counters: Float64Array;

  constructor(counters: Float64Array) {
    this.counters = counters;
  }

  evictOldestIfFull(): void {
    if (this.sessions.size < MAX_PENDING_CONNECTIONS) return;
    const [oldest] = this.sessions;
    oldest?.end('prelude-timeout');
  }
}
