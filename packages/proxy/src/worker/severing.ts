import type { Outcome } from '../counters/outcome.ts';
import type { Member } from '../relay/member.ts';
import { InTurns } from './in-turns.ts';

interface Doomed {
  readonly member: Member;
  readonly outcome: Outcome;
}

/** Ends many connections without holding up those that are to live. */
export class Severing {
  readonly #doomed: InTurns<Doomed>;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(onThrow: (thrown: unknown) => void) {
    this.#doomed = new InTurns(({ member, outcome }) => member.end(outcome), onThrow);
  }

  /** Those that are open now. One that ends by itself meanwhile keeps its own outcome. */
  sever(members: Iterable<Member>, outcome: Outcome): void {
    this.#doomed.add(doomed(members, outcome));
  }
}

function* doomed(members: Iterable<Member>, outcome: Outcome): Iterable<Doomed> {
  for (const member of members) yield { member, outcome };
}
