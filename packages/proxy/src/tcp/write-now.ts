import { writeSync } from 'node:fs';
import { constants } from 'node:os';

/**
 * write(2) on a descriptor that does not block: how many bytes the kernel took, 0 when it takes none now, below 0 the
 * negative errno. It never keeps `bytes`, as a write of libuv's would: so a shared buffer may be given here.
 */
export function writeToDescriptor(descriptor: number, bytes: Uint8Array): number {
  // A full send buffer is told by a throw: nobody reads its stack, and making it is what costs.
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return writeSync(descriptor, bytes);
  } catch (thrown) {
    const { code, errno = -constants.errno.EIO } = thrown as NodeJS.ErrnoException;
    return code === 'EAGAIN' ? 0 : errno;
  } finally {
    Error.stackTraceLimit = limit;
  }
}
