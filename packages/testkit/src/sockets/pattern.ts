/**
 * Returns a part of a repeatable byte stream, so that any part can be checked alone. The streams of two seeds (0 to
 * 255) differ in every byte. The period (251 · 65,536 bytes) is far longer than any buffer, so a check finds lost,
 * repeated, reordered and foreign bytes.
 */
export function patternBytes({ seed, offset, length }: { seed: number; offset: number; length: number }): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let index = 0; index < length; index++) bytes[index] = patternByte(seed, offset + index);
  return bytes;
}

/** Returns the index of the first byte that does not match the pattern, or -1 if all bytes match. */
export function firstMismatch(bytes: Uint8Array, { seed, offset }: { seed: number; offset: number }): number {
  for (let index = 0; index < bytes.length; index++) {
    if (bytes[index] !== patternByte(seed, offset + index)) return index;
  }
  return -1;
}

function patternByte(seed: number, at: number): number {
  return (at % 251) ^ ((at >>> 8) & 0xff) ^ ((seed * 97) & 0xff);
}
