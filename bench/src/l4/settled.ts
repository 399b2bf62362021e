import { setTimeout } from 'node:timers/promises';

const STABLE_INTERVAL_MS = 1_500;

/** The ledger is written once a second: it has settled when two readings further apart than that are equal. */
export async function readUntilStable<T>(read: () => Promise<T>): Promise<T> {
  for (let last = await read(), attempt = 0; attempt < 10; attempt++) {
    await setTimeout(STABLE_INTERVAL_MS);
    const before = last;
    last = await read();
    if (JSON.stringify(before) === JSON.stringify(last)) return last;
  }
  throw new Error('the ledger goes on changing without traffic');
}
