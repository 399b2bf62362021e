import { type ServiceEntry, type Suspension, suspensionFor } from '@weir/model/data-plane';
import type { Session } from '../relay/member.ts';
import { type SessionCollection, SessionSet } from '../relay/members.ts';

/** What is open of somebody, and where it is counted. */
export interface CountedSessions {
  readonly sessions: SessionCollection<Session>;
  /** Where new connections are counted. */
  readonly row: Float64Array;
}

/** What is open of one Service, under the name by which a Suspension finds them. */
export class ServiceSessions implements CountedSessions {
  readonly sessions: SessionSet<Session> = new SessionSet();
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
  updateSuspension(cutoffs: readonly Suspension[], now: number): boolean {
    this.#isCutOff = suspensionFor(cutoffs, this.service, now) !== undefined;
    return this.#isCutOff;
  }
}
