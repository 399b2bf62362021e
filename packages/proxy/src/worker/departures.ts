import { type EndpointLoad, endpointKey } from '@weir/model';
import type { DepartedEndpoint } from '../health/departed-book.ts';
import type { Member } from '../relay/member.ts';
import type { Severing } from './severing.ts';

interface Departure {
  /** UID of its Service. */
  readonly service: string;
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

  get endpoints(): readonly DepartedEndpoint[] {
    return [...this.#departed].map(([{ endpoint }, { service }]) => [service, endpointKey(endpoint)]);
  }

  tick(now: number): void {
    const due = new Map<Iterable<Member>, Set<EndpointLoad>>();
    for (const [load, { members, dueAt }] of this.#departed) {
      if (load.active > 0 && now < dueAt) continue;
      this.#departed.delete(load);
      if (load.active === 0) continue;
      const loads = due.get(members);
      if (loads === undefined) due.set(members, new Set([load]));
      else loads.add(load);
    }
    // Each Service is gone through once: a rollout replaces hundreds of endpoints, and as many thousands may be open.
    for (const [members, loads] of due) this.#severing.sever(membersAt(loads, members), 'drained');
  }
}

function* membersAt(loads: ReadonlySet<EndpointLoad>, members: Iterable<Member>): Iterable<Member> {
  for (const member of members) if (member.load !== undefined && loads.has(member.load)) yield member;
}
