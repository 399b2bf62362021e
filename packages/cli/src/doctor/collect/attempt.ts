import { errorMessage } from '@weir/runtime';
import { type Fact, known, unknown } from '../fact.ts';

/** What cannot be had is a fact, too: one check less, and the others go on. Only the wish to end ends it. */
export async function attempt<T>(signal: AbortSignal, look: () => Promise<T>): Promise<Fact<T>> {
  try {
    return known(await look());
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    return unknown('failed', errorMessage(thrown));
  }
}
