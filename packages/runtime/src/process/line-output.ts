import { write } from 'node:fs';
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
  standard ??= createLineOutput(STANDARD_OUTPUT);
  return standard;
}

/**
 * Writes lines to a descriptor, in the order of the calls, and never blocks this thread: `process.stdout` would wait for
 * the reader of a pipe. The caller must wait for a write before the next one if its memory is to be bounded.
 */
export function createLineOutput(descriptor: number): LineOutput {
  let last = Promise.resolve();
  let isBroken = false;
  const writeAll = async (lines: Uint8Array): Promise<void> => {
    let at = 0;
    while (at < lines.length && !isBroken) {
      const result = await writeSome(descriptor, lines, at);
      if (typeof result === 'number') at += result;
      // The descriptor is not blocking, and its reader is slow.
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
