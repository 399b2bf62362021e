import type { Outcome } from '../counters/outcome.ts';
import type { Session } from '../relay/member.ts';
import { BatchedAction } from './in-turns.ts';

interface PendingEnd {
  readonly session: Session;
  readonly outcome: Outcome;
}

/** Ends many connections without holding up those that are to live. */
export class SessionTerminator {
  readonly #pendingEnds: BatchedAction<PendingEnd>;

  /** `onThrow` hears of one that could not be ended: the others are, all the same. */
  constructor(onThrow: (thrown: unknown) => void) {
    this.#pendingEnds = new BatchedAction(({ session, outcome }) => session.end(outcome), onThrow);
  }

  /** Those that are open now. One that ends by itself meanwhile keeps its own outcome. */
  terminate(members: Iterable<Session>, outcome: Outcome): void {
    this.#pendingEnds.add(pendingEndsOf(members, outcome));
  }
}

function* pendingEndsOf(members: Iterable<Session>, outcome: Outcome): Iterable<PendingEnd> {
  for (const session of members) yield { session, outcome };
}
