import { type Cutoff, cutoffFor, type ServiceEntry } from '@weir/model/data-plane';
import type { Member } from '../relay/member.ts';
import { type MemberBook, Members } from '../relay/members.ts';

/** What is open of somebody, and where it is counted. */
export interface CountedMembers {
  readonly members: MemberBook<Member>;
  /** Where new connections are counted. */
  readonly row: Float64Array;
}

/** What is open of one Service, under the name by which a Suspension finds them. */
export class ServiceGroup implements CountedMembers {
  readonly members: Members<Member> = new Members();
  service: ServiceEntry;
  row: Float64Array;
  #isCutOff = false;

  constructor(service: ServiceEntry, row: Float64Array) {
    this.service = service;
    this.row = row;
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** Whether it is cut off now; what is open is for the caller to sever. */
  judge(cutoffs: readonly Cutoff[], now: number): boolean {
    this.#isCutOff = cutoffFor(cutoffs, this.service, now) !== undefined;
    return this.#isCutOff;
  }
}
