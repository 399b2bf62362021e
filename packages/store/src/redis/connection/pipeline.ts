import type { ChainableCommander, Redis } from 'ioredis';

/** Reads several things at one moment (MULTI): the answers in the order of the commands, or the first error. */
export async function runTransaction(
  redis: Redis,
  add: (transaction: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  try {
    return repliesOf(await add(redis.multi()).exec());
  } catch (error) {
    // that the transaction was discarded says nothing; the command that was refused does
    const causes = error instanceof Error && 'previousErrors' in error ? error.previousErrors : undefined;
    throw Array.isArray(causes) && causes.length > 0 ? causes[0] : error;
  }
}

/** Sends several commands in one go, without the promise that nothing happens between them. */
export async function runPipeline(
  redis: Redis,
  add: (pipeline: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  return repliesOf(await add(redis.pipeline()).exec());
}

function repliesOf(replies: [Error | null, unknown][] | null): unknown[] {
  if (replies === null) throw new Error('Command aborted');
  return replies.map(([error, answer]) => {
    if (error !== null) throw error;
    return answer;
  });
}
