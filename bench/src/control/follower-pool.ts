import { RpcProcess } from '../processes/rpc.ts';
import type { FollowerRpc } from './followers-process.ts';

const PROCESS_COUNT = 4;
const FOLLOWERS_PROGRAM = new URL('followers-process.ts', import.meta.url);

/** Followers in a few processes: as many as there are nodes would not fit on one machine. */
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

  /** Returns how long each new one took to its first table. */
  async growTo(size: number): Promise<readonly number[]> {
    const of = (whole: number, index: number): number =>
      Math.floor((whole + PROCESS_COUNT - 1 - index) / PROCESS_COUNT);
    const before = this.#size;
    this.#size = size;
    const times = await Promise.all(
      this.#processes.map((each, index) => each.call('join', of(size, index) - of(before, index))),
    );
    return times.flat();
  }

  /** When each of them had applied it. */
  async appliedAt(revision: number): Promise<readonly number[]> {
    return (await Promise.all(this.#processes.map((each) => each.call('applied', revision)))).flat();
  }

  /** Bytes that all of them together got from Redis. */
  async receivedBytes(): Promise<number> {
    const all = await Promise.all(this.#processes.map((each) => each.call('received')));
    return all.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws unless they hold the table with this digest: all entries of one in each process, and the number of entries of all. */
  async verifyTables(digest: string): Promise<void> {
    const all = await Promise.all(this.#processes.map((each) => each.call('digest')));
    const sizes = new Set(all.flatMap(({ entries }) => entries));
    const others = all.filter((each) => each.entries.length > 0 && each.digest !== digest);
    if (sizes.size !== 1 || others.length > 0)
      throw new Error('the table of a follower differs from the table of the controller');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((each) => each[Symbol.asyncDispose]()));
  }
}
