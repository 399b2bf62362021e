import type { ChainableCommander, Redis } from 'ioredis';

/** Runs commands atomically (MULTI). Returns their replies in order; throws the first error. */
export async function runTransaction(
  redis: Redis,
  add: (transaction: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  try {
    return repliesOf(await add(redis.multi()).exec());
  } catch (error) {
    // Throws the error of the refused command, because it explains the failure better than EXECABORT.
    const causes = error instanceof Error && 'previousErrors' in error ? error.previousErrors : undefined;
    throw Array.isArray(causes) && causes.length > 0 ? causes[0] : error;
  }
}

/** Sends several commands in one round trip, not atomically. Returns their replies in order; throws the first error. */
export async function runPipeline(
  redis: Redis,
  add: (pipeline: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  return repliesOf(await add(redis.pipeline()).exec());
}

function repliesOf(replies: [Error | null, unknown][] | null): unknown[] {
  if (replies === null) throw new Error('Command aborted');
  return replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
}
