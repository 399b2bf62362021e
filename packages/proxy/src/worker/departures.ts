import { type EndpointLoad, endpointKey } from '@weir/model/data-plane';
import type { DepartedEndpoint } from '../health/departed-book.ts';
import type { Member } from '../relay/member.ts';
import { InTurns } from './in-turns.ts';
import type { Severing } from './severing.ts';

/** Changes of the table come in bursts: what is open of a Service is gone through once for many of them. */
const GAP_MS = 100;

interface Departure {
  /** UID of its Service. */
  readonly service: string;
  readonly members: Iterable<Member>;
  readonly dueAt: number;
}

/**
 * Endpoints that have left, or fail their checks, while connections to them are open: these may go on for a while that the Service
 * gives them. Those that still try to reach one hear of it, since it may be gone for good: a Pod that was deleted answers nothing.
 */
export class Departures {
  readonly #severing: Severing;
  readonly #departed = new Map<EndpointLoad, Departure>();
  /** Of whom nobody was told yet. */
  readonly #untold = new Set<EndpointLoad>();
  readonly #told: InTurns<Member>;

  constructor(severing: Severing, onThrow: (thrown: unknown) => void) {
    this.#severing = severing;
    // Before its turn comes a member may have gone on by itself: then it must not give up the endpoint that it tries now.
    this.#told = new InTurns((member) => this.#hasLeft(member.load) && member.onEndpointLeft(), onThrow);
  }

  /** `members` are those of its Service; `dueAt` in ticks. */
  add(load: EndpointLoad, departure: Departure): void {
    if (load.active === 0) return;
    this.#departed.set(load, departure);
    if (this.#untold.size === 0) setTimeout(() => this.#tell(), GAP_MS).unref();
    this.#untold.add(load);
  }

  /** It is back among the endpoints, or works again. */
  remove(load: EndpointLoad): void {
    this.#departed.delete(load);
  }

  get endpoints(): readonly DepartedEndpoint[] {
    return [...this.#departed].map(([{ endpoint }, { service }]) => [service, endpointKey(endpoint)]);
  }

  tick(now: number): void {
    const due: [EndpointLoad, Departure][] = [];
    for (const [load, departure] of this.#departed) {
      if (load.active > 0 && now < departure.dueAt) continue;
      this.#departed.delete(load);
      if (load.active > 0) due.push([load, departure]);
    }
    for (const members of membersAt(due)) this.#severing.sever(members, 'drained');
  }

  #tell(): void {
    const left: [EndpointLoad, Departure][] = [];
    for (const load of this.#untold) {
      const departure = this.#departed.get(load);
      if (departure !== undefined && load.active > 0) left.push([load, departure]);
    }
    this.#untold.clear();
    for (const members of membersAt(left)) this.#told.add(members);
  }

  #hasLeft(load: EndpointLoad | undefined): boolean {
    return load !== undefined && this.#departed.has(load);
  }
}

/** Each Service is gone through once: a rollout replaces hundreds of endpoints, and as many thousands may be open. */
function membersAt(departures: readonly (readonly [EndpointLoad, Departure])[]): Iterable<Member>[] {
  const loadsOf = new Map<Iterable<Member>, Set<EndpointLoad>>();
  for (const [load, { members }] of departures) {
    const loads = loadsOf.get(members);
    if (loads === undefined) loadsOf.set(members, new Set([load]));
    else loads.add(load);
  }
  return [...loadsOf].map(([members, loads]) => whoGoesTo(loads, members));
}

function* whoGoesTo(loads: ReadonlySet<EndpointLoad>, members: Iterable<Member>): Iterable<Member> {
  for (const member of members) if (member.load !== undefined && loads.has(member.load)) yield member;
}
