// Limits how many bytes the kernel receives before this process reads them. Otherwise the kernel enlarges the buffer of a fast
// stream up to `net.ipv4.tcp_rmem`: 6 MiB, or 32 MiB on newer systems. One stream can then fill a tenant's share of the buffers.
import { SO_BUF_LOCK, SO_RCVBUF, SOL_SOCKET } from '../syscalls/layouts.ts';
import { setOption, socketMemory } from '../syscalls/sockets.ts';

/** The kernel doubles this value, because half of a buffer is for its own structures. A larger buffer does not save CPU time. */
const FAST_RECEIVE_BYTES = 2_097_152;

/** Whether `net.core.rmem_max` allows a buffer of `FAST_RECEIVE_BYTES`. */
let isAllowed = true;

/**
 * Sets the receive buffer of a fast stream to 4 MiB, which the kernel then does not enlarge any more. If `net.core.rmem_max`
 * is less than 2 MiB, the kernel still chooses the size, because a smaller buffer costs CPU time.
 */
export function limitReceiveBuffer(descriptor: number): void {
  if (!isAllowed) return;
  setOption(descriptor, SOL_SOCKET, SO_RCVBUF, FAST_RECEIVE_BYTES);
  const { maxReceived } = socketMemory(descriptor);
  // 0 says that the socket cannot be read any more.
  isAllowed = maxReceived === 0 || maxReceived >= 2 * FAST_RECEIVE_BYTES;
  if (!isAllowed) setOption(descriptor, SOL_SOCKET, SO_BUF_LOCK, 0);
}
