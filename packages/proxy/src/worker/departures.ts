import type { EndpointLoad } from '@weir/model';
import type { Member } from '../relay/member.ts';
import type { Severing } from './severing.ts';

interface Departure {
  readonly members: Iterable<Member>;
  readonly dueAt: number;
}

/** Endpoints that have left while connections to them are open: these may go on for the Service's drain timeout. */
export class Departures {
  readonly #severing: Severing;
  readonly #departed = new Map<EndpointLoad, Departure>();

  constructor(severing: Severing) {
    this.#severing = severing;
  }

  /** `members` are those of its Service; `dueAt` in ticks. */
  add(load: EndpointLoad, departure: Departure): void {
    if (load.active > 0) this.#departed.set(load, departure);
  }

  /** It is back among the endpoints. */
  remove(load: EndpointLoad): void {
    this.#departed.delete(load);
  }

  tick(now: number): void {
    for (const [load, { members, dueAt }] of this.#departed) {
      if (load.active > 0 && now < dueAt) continue;
      this.#departed.delete(load);
      if (load.active > 0) this.#severing.sever(membersAt(load, members), 'drained');
    }
  }
}

function* membersAt(load: EndpointLoad, members: Iterable<Member>): Iterable<Member> {
  for (const member of members) if (member.load === load) yield member;
}
