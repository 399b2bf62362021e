import type { Session } from '../relay/member.ts';
import type { CountedSessions } from './service-group.ts';

/** Each may hold a descriptor and the 16 KiB of a ClientHello that is not whole. */
const MAX_PENDING_CONNECTIONS = 1_024;

/**
 * Clients of shared listeners that have not said yet whom they want, so that no tenant's limits concern them. Whoever keeps us
 * waiting longest makes room for the next: a flood of those who say nothing gets in the way of each other, and not of one who
 * says it at once.
 */
export class PendingConnections implements CountedSessions {
  /** In the order in which they came. */
  readonly sessions: Set<Session> = new Set();
  readonly row: Float64Array;

  constructor(row: Float64Array) {
    this.row = row;
  }

  /** For one more. */
  evictOldestIfFull(): void {
    if (this.sessions.size < MAX_PENDING_CONNECTIONS) return;
    const [longest] = this.sessions;
    longest?.end('prelude-timeout');
  }
}
