import { errorMessage } from '@weir/runtime';
import { type Fact, knownFact, unknownFact } from '../fact.ts';

/** What cannot be had is a fact, too: one check less, and the others go on. Only the wish to end ends it. */
export async function attemptFact<T>(signal: AbortSignal, look: () => Promise<T>): Promise<Fact<T>> {
  try {
    return knownFact(await look());
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    return unknownFact('failed', errorMessage(thrown));
  }
}
