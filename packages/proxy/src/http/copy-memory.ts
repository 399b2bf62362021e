/** Longer requests are not copied. The transport sends a shorter one with one system call, completely or not at all. */
export const MAX_COPIED_BYTES = 16_384;
const SHORT_BYTES = 1_024;
const MAX_FREE_SHORT = 256;
const MAX_FREE_LONG = 32;

const shortMemory: Uint8Array[] = [];
const longMemory: Uint8Array[] = [];

/**
 * Returns memory for the copy of a request of `length` bytes, at most `MAX_COPIED_BYTES`. All connections of this thread share
 * the memory, so that it stays in the processor's cache, and idle connections hold none. New memory for each copy would cost
 * more than the rest of a request.
 */
export function takeCopyMemory(length: number): Uint8Array {
  return length > SHORT_BYTES
    ? (longMemory.pop() ?? new Uint8Array(MAX_COPIED_BYTES))
    : (shortMemory.pop() ?? new Uint8Array(SHORT_BYTES));
}

/** Gives memory of `takeCopyMemory` back. The caller must not use the memory afterwards. Ignores other memory. */
export function giveBackCopyMemory(memory: Uint8Array): void {
  if (memory.length === SHORT_BYTES && shortMemory.length < MAX_FREE_SHORT) shortMemory.push(memory);
  else if (memory.length === MAX_COPIED_BYTES && longMemory.length < MAX_FREE_LONG) longMemory.push(memory);
}
