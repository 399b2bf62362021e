import type { Member } from '../relay/member.ts';
import type { CountedMembers } from './service-group.ts';

/** Each may hold a descriptor and the 16 KiB of a ClientHello that is not whole. */
const MOST_STRANGERS = 1_024;

/**
 * Clients of shared listeners that have not said yet whom they want, so that no tenant's limits concern them. Whoever keeps us
 * waiting longest makes room for the next: a flood of those who say nothing gets in the way of each other, and not of one who
 * says it at once.
 */
export class Strangers implements CountedMembers {
  /** In the order in which they came. */
  readonly members: Set<Member> = new Set();
  readonly row: Float64Array;

  constructor(row: Float64Array) {
    this.row = row;
  }

  /** For one more. */
  makeRoom(): void {
    if (this.members.size < MOST_STRANGERS) return;
    const [longest] = this.members;
    longest?.end('prelude-timeout');
  }
}
