/**
 * A stream of bytes that any part of can be computed and checked alone. Seeds 0 to 255 differ in every byte, and the period
 * (251 · 65,536) is far longer than any buffer, so that lost, repeated, moved or foreign bytes do not go unseen.
 */
export function patternBytes({ seed, offset, length }: { seed: number; offset: number; length: number }): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let index = 0; index < length; index++) bytes[index] = patternByte(seed, offset + index);
  return bytes;
}

/** The first offset in `bytes` that is not as the pattern says, or -1. */
export function firstMismatch(bytes: Uint8Array, { seed, offset }: { seed: number; offset: number }): number {
  for (let index = 0; index < bytes.length; index++) {
    if (bytes[index] !== patternByte(seed, offset + index)) return index;
  }
  return -1;
}

function patternByte(seed: number, at: number): number {
  return (at % 251) ^ ((at >>> 8) & 0xff) ^ ((seed * 97) & 0xff);
}
