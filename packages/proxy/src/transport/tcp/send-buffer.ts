// The limit of the kernel's send buffers: how many unsent bytes the kernel buffers for one connection. By default, the kernel
// buffers several megabytes per slow reader, at the cost of all tenants.
import { IPPROTO_TCP, TCP_NOTSENT_LOWAT } from '../syscalls/layouts.ts';
import { setOption } from '../syscalls/sockets.ts';

/** The usual limit. */
export const MAX_UNSENT_BYTES = 131_072;
/** The limit of a wide buffer, for a stream that gets the bytes of wide reads. A wide buffer wakes this worker less often. */
const MAX_UNSENT_BYTES_WIDE = 2_097_152;
/** After a shorter write, a wide buffer gets the usual limit again. */
export const MIN_WIDE_WRITE_BYTES = 65_536;
/** How many streams of a worker may have a wide buffer. Limits the memory that slow readers can take. */
const MAX_WIDE_BUFFERS = 16;

let wideBuffers = 0;

/** Sets the limit of a socket. Accepted connections inherit the limit of their listen socket. */
export function limitUnsentBytes(descriptor: number, bytes: number): number {
  return setOption(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

/** Gives the socket a wide buffer. Returns false if too many streams have one. */
export function takeWideBuffer(descriptor: number): boolean {
  if (wideBuffers >= MAX_WIDE_BUFFERS) return false;
  wideBuffers += 1;
  limitUnsentBytes(descriptor, MAX_UNSENT_BYTES_WIDE);
  return true;
}

/** Must be called when the buffer of a stream is no longer wide, or its stream has closed. */
export function releaseWideBuffer(): void {
  wideBuffers -= 1;
}
