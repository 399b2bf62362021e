import { once } from 'node:events';
import { connect } from 'node:net';
import { patternBytes } from '@weir/testkit';

export type BulkDownload = { readonly requestBytes: number; readonly ms: number };
/**
 * Size of the block that the source repeats. If a whole block is lost or repeated, the stream has a wrong length. After any smaller error,
 * bytes differ from the expected bytes.
 */
export const BLOCK_BYTES: number = 1024 * 1024;
export const BUFFER_BYTES: number = 256 * 1024;
/** Asks the bulk source for a stream that does not end during a measurement. */
export const ENDLESS_REQUEST = '100000000000\n';
const SILENCE_TIMEOUT_MS = 10_000;
/** One block and the start of the next block, so that a received chunk can be compared at any offset in the block. */
const expected = Buffer.concat([bulkBlock(), bulkBlock().subarray(0, BUFFER_BYTES)]);

/** Downloads `bytes` bytes from the bulk source. Throws if any byte differs, or if the stream does not have `bytes` bytes. */
export async function downloadBulk(port: number, bytes: number): Promise<BulkDownload> {
  const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  let received = 0;
  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: {
      buffer: shared,
      callback: (count) => {
        const at = received % BLOCK_BYTES;
        if (expected.compare(shared, 0, count, at, at + count) !== 0) {
          socket.destroy(
            new Error(`bytes ${received} to ${received + count} of the stream differ from the sent bytes`),
          );
        }
        received += count;
        return true;
      },
    },
  });
  socket.setTimeout(SILENCE_TIMEOUT_MS, () =>
    socket.destroy(new Error(`the stream was silent for ${SILENCE_TIMEOUT_MS} ms`)),
  );
  const ended = once(socket, 'end');
  const closed = once(socket, 'close');
  const request = `${bytes}\n`;
  const startedAt = performance.now();
  socket.write(request);
  // both promises reject on an error: a reset or a wrong byte does not pass as the end of the stream
  await Promise.all([ended, closed]);
  if (received !== bytes) throw new Error(`the stream ended after ${received} of ${bytes} bytes`);
  return { requestBytes: request.length, ms: performance.now() - startedAt };
}

export function bulkBlock(): Buffer {
  return patternBytes({ seed: 1, offset: 0, length: BLOCK_BYTES });
}
