import { closeSync, constants, fstatSync, openSync, write } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Takes complete lines. */
export interface LineOutput {
  /** Resolves when the lines are written, or discarded because nobody can read them any more. Never rejects. */
  write(lines: Uint8Array): Promise<void>;
}

const STANDARD_OUTPUT = 1;
const RETRY_INTERVAL_MS = 20;

let standard: LineOutput | undefined;

/** The standard output of this process. All parts of the process must write lines through this object. */
export function standardOutput(): LineOutput {
  standard ??= createLineOutput(openWithoutBlocking(STANDARD_OUTPUT));
  return standard;
}

/**
 * Writes lines to a descriptor, in the order of the calls. Never blocks this thread, as `process.stdout` does if the reader
 * of a pipe is slow. The caller must wait for a write before the next one if its memory is to be bounded.
 */
function createLineOutput(descriptor: number): LineOutput {
  let last = Promise.resolve();
  let isBroken = false;
  const writeAll = async (lines: Uint8Array): Promise<void> => {
    let at = 0;
    while (at < lines.length && !isBroken) {
      const result = await writeSome(descriptor, lines, at);
      if (typeof result === 'number') at += result;
      // The pipe is full.
      else if (result === 'EAGAIN') await wait(RETRY_INTERVAL_MS);
      else isBroken = true;
    }
  };
  return {
    write(lines) {
      last = last.then(() => writeAll(lines));
      return last;
    },
  };
}

/** Returns how many bytes were written, or the errno name of the failure. */
function writeSome(descriptor: number, bytes: Uint8Array, at: number): Promise<number | string> {
  const { promise, resolve } = Promise.withResolvers<number | string>();
  write(descriptor, bytes, at, bytes.length - at, null, (error, written) => {
    resolve(error === null ? written : (error.code ?? 'UNKNOWN'));
  });
  return promise;
}

/**
 * Returns a descriptor of the same pipe that does not block. Otherwise a full pipe would hold a thread of libuv's pool, and
 * the process could not end. The pipe is opened anew, because O_NONBLOCK on the given descriptor would apply to other
 * processes that share the descriptor. Returns the given descriptor if it is no pipe, or cannot be opened.
 */
function openWithoutBlocking(descriptor: number): number {
  let opened: number | undefined;
  try {
    if (!fstatSync(descriptor).isFIFO()) return descriptor;
    opened = openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
    if (fstatSync(opened).isFIFO()) return opened;
    closeSync(opened);
  } catch {
    // Without /proc, or without the right to open the pipe.
  }
  return descriptor;
}
