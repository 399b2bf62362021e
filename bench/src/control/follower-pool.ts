import { RpcProcess } from '../processes/rpc.ts';
import type { FollowerRpc } from './followers-process.ts';

const PROCESS_COUNT = 4;
const FOLLOWERS_PROGRAM = new URL('followers-process.ts', import.meta.url);

/** Followers that share a few processes, because one machine cannot run a separate process for each follower. */
export class FollowerPool {
  readonly #processes: readonly RpcProcess<FollowerRpc>[];
  #size = 0;

  constructor(url: string, fleet: string) {
    this.#processes = Array.from(
      { length: PROCESS_COUNT },
      () => new RpcProcess<FollowerRpc>(FOLLOWERS_PROGRAM, [url, fleet]),
    );
  }

  get size(): number {
    return this.#size;
  }

  /** Adds followers up to `size`. Returns for each new follower the milliseconds until the follower had its first table. */
  async growTo(size: number): Promise<readonly number[]> {
    const followersIn = (total: number, index: number): number =>
      Math.floor((total + PROCESS_COUNT - 1 - index) / PROCESS_COUNT);
    const before = this.#size;
    this.#size = size;
    const times = await Promise.all(
      this.#processes.map((process, index) =>
        process.call('join', followersIn(size, index) - followersIn(before, index)),
      ),
    );
    return times.flat();
  }

  /** Returns for each follower the time at which it applied the revision. Times are of the machine's monotonic clock. */
  async appliedAt(revision: number): Promise<readonly number[]> {
    return (await Promise.all(this.#processes.map((process) => process.call('applied', revision)))).flat();
  }

  /** Returns the bytes that all followers together have received from Redis. */
  async receivedBytes(): Promise<number> {
    const counts = await Promise.all(this.#processes.map((process) => process.call('received')));
    return counts.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws unless all followers have the same number of entries, and the first follower of each process has a table with this digest. */
  async verifyTables(digest: string): Promise<void> {
    const digests = await Promise.all(this.#processes.map((process) => process.call('digest')));
    const sizes = new Set(digests.flatMap(({ entries }) => entries));
    const different = digests.filter(({ entries, digest: actual }) => entries.length > 0 && actual !== digest);
    if (sizes.size !== 1 || different.length > 0)
      throw new Error('the table of a follower differs from the table of the controller');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()));
  }
}
