// The access logs on the main thread. Writes the lines of all workers to the standard output, and sends the lines of a
// Service to its followers (`weir logs`).
import type { LineOutput } from '@weir/runtime';
import type { LogChunk } from './log-buffer.ts';

/** How many bytes may wait for a follower before its lines are dropped. */
const MAX_UNREAD_BYTES = 262_144;
const MAX_FOLLOWERS = 64;
const NEWLINE = 0x0a;

/** Where the lines of a follower go: an HTTP response. */
export interface FollowerStream {
  readonly writableLength: number;
  write(bytes: Uint8Array | string): unknown;
}

export class LogHub {
  readonly #output: LineOutput;
  /** The followers by `NAMESPACE/NAME` of their Service. */
  readonly #followers = new Map<string, Set<Follower>>();
  #followerCount = 0;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(output: LineOutput) {
    this.#output = output;
  }

  /** Calls `onTaken` when the chunk is written. A slow standard output thus holds back the workers' buffers. */
  publish({ bytes, runs }: LogChunk, onTaken: () => void): void {
    this.#lastWrite = this.#output.write(bytes).then(onTaken);
    if (this.#followerCount === 0) return;
    let start = 0;
    for (const { service, end } of runs) {
      for (const follower of this.#followers.get(service) ?? []) follower.send(bytes.subarray(start, end));
      start = end;
    }
  }

  /** Resolves when all published lines are written. */
  get written(): Promise<void> {
    return this.#lastWrite;
  }

  /**
   * Writes all further lines of the Service (`NAMESPACE/NAME`) to the stream. A stream that is read too slowly misses
   * lines, and gets a line `{"dropped":N}` in their place. Returns a function that ends the following, or undefined if
   * there are too many followers.
   */
  follow(service: string, stream: FollowerStream): (() => void) | undefined {
    if (this.#followerCount >= MAX_FOLLOWERS) return undefined;
    const follower = new Follower(stream);
    const followers = this.#followers.get(service) ?? new Set();
    this.#followers.set(service, followers.add(follower));
    this.#followerCount += 1;
    return () => {
      if (!followers.delete(follower)) return;
      this.#followerCount -= 1;
      if (followers.size === 0 && this.#followers.get(service) === followers) this.#followers.delete(service);
    };
  }
}

class Follower {
  readonly #stream: FollowerStream;
  #dropped = 0;

  constructor(stream: FollowerStream) {
    this.#stream = stream;
  }

  send(lines: Uint8Array): void {
    if (this.#stream.writableLength + lines.length > MAX_UNREAD_BYTES) {
      this.#dropped += countLines(lines);
      return;
    }
    if (this.#dropped > 0) this.#stream.write(`{"dropped":${this.#dropped}}\n`);
    this.#dropped = 0;
    this.#stream.write(lines);
  }
}

function countLines(lines: Uint8Array): number {
  let count = 0;
  for (let at = lines.indexOf(NEWLINE); at >= 0; at = lines.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
