import { once } from 'node:events';
import { connect } from 'node:net';
import { patternBytes } from '@weir/testkit';

export type BulkDownload = { readonly requestBytes: number; readonly ms: number };
/** Sent over and over; a whole block lost or repeated shows only in the count, anything less in the bytes. */
export const BLOCK_BYTES: number = 1024 * 1024;
const BUFFER_BYTES = 256 * 1024;
const SILENCE_TIMEOUT_MS = 10_000;
/** One block and the beginning of the next, so that what arrives can be compared wherever it begins. */
const expected = Buffer.concat([bulkBlock(), bulkBlock().subarray(0, BUFFER_BYTES)]);

/** Takes one stream of `bytes` bytes from a bulk source. Throws when it is not to the byte what was asked for. */
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
          socket.destroy(new Error(`of bytes ${received} to ${received + count} of the stream some are not as sent`));
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
  const begin = performance.now();
  socket.write(request);
  // both reject on an error, so a reset or a foreign byte does not pass for an end
  await Promise.all([ended, closed]);
  if (received !== bytes) throw new Error(`the stream ended after ${received} of ${bytes} bytes`);
  return { requestBytes: request.length, ms: performance.now() - begin };
}

export function bulkBlock(): Buffer {
  return patternBytes({ seed: 1, offset: 0, length: BLOCK_BYTES });
}
